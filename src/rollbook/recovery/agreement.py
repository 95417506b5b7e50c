"""Whether a command agrees with the run that it is to go on with: what differs, what that means, what to type next.

Rules:
* Nothing that differs is passed over: it refuses, or it is noted. Not noted is a setting that has no effect on answers
  and rewards and that nobody gave this time: it is a default of whoever goes on with the run.
* A setting that shapes the plan is judged by the plan's rows: where they are those of the run, it changed nothing.
* A plan that is only shorter refuses nothing: the one on disk stands.
* What is shown of a value is its digest.

Source: collection.md §5.1, §5.4; cases RC-16, RC-18.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

import msgspec

from rollbook.recovery.drift import INPUTS, SETTINGS, Drift, drift_of, instance_of, step_below
from rollbook.recovery.fingerprint import digest_of
from rollbook.recovery.plan_digest import PlanComparison

_SHOWN: Final = 12
_MOST_IRRELEVANT: Final = 8
_NULL: Final = digest_of(None)
WHAT_NEXT: Final = "start a new run with another --output, or go on anyway with +allow_unsafe_resume=true"
_HOW_MANY: Final = tuple(f"{SETTINGS}.{name}" for name in ("limit", "task_shard", "num_repeats", "interleave_repeats"))
"""What says how many rows there are, or in which order, and changes none."""


class Difference(msgspec.Struct, frozen=True):
    """A dotted key whose digests differ; None where a side does not have the key."""

    key: str
    drift: Drift
    old: str | None
    new: str | None

    def __str__(self) -> str:
        """Show the key and the beginnings of both digests."""
        return f"{self.key}: {_shown(self.old)} -> {_shown(self.new)}"


class Agreement(msgspec.Struct, frozen=True):
    """What a person is told before a run goes on, and what going on would mix, if anything."""

    notes: tuple[str, ...]
    mixed: str | None = None

    @property
    def refused(self) -> str | None:
        """Why the run must not go on, and what to type next; None when it may."""
        return None if self.mixed is None else f"the resume is refused: {self.mixed}\n{WHAT_NEXT}"


def differences(old_keys: Mapping[str, str], new_keys: Mapping[str, str]) -> tuple[Difference, ...]:
    """Return what differs between two sets of fingerprints, sorted by key.

    A setting that one side does not know is one that is null. Servers that the run did not use extend it, where
    none that it did use is gone.
    """
    joined = _joined(old_keys, new_keys)
    found: list[Difference] = []
    for key in sorted({*old_keys, *new_keys}):
        old, new = old_keys.get(key), new_keys.get(key)
        if old != new and not (instance_of(key) == SETTINGS and {old, new} == {None, _NULL}):
            drift = drift_of(key)
            extends = drift is not Drift.IRRELEVANT and instance_of(key) in joined
            found.append(Difference(key, Drift.EXTENDS if extends else drift, old, new))
    return tuple(found)


def verdict(found: Sequence[Difference], comparison: PlanComparison, given: Collection[str] | None = None) -> Agreement:
    """Return whether a run may go on with settings that differ by `found`, and rows that compare as given.

    `given` names the settings that somebody gave this time, if that is known.
    """
    by_drift = {drift: [one for one in found if one.drift is drift] for drift in Drift}
    paragraphs = [
        *_mixing(by_drift[Drift.RERUNS], by_drift[Drift.EXTENDS], comparison),
        *_unscored_anew(by_drift[Drift.RESCORES]),
    ]
    notes = [*_irrelevant([one for one in by_drift[Drift.IRRELEVANT] if _was_given(one.key, given)])]
    if not comparison.is_another_plan:
        notes += [*_without_effect(by_drift[Drift.EXTENDS], comparison), *_other_length(comparison)]
    return Agreement(tuple(notes), "\n".join(paragraphs) or None)


def _joined(old_keys: Iterable[str], new_keys: Iterable[str]) -> frozenset[str]:
    """Return the instances that are new, where none is gone: one that took another's place is no addition."""
    before, after = ({instance_of(key) for key in keys} - {SETTINGS, INPUTS} for keys in (old_keys, new_keys))
    return frozenset(after - before) if before <= after and before else frozenset()


def _mixing(reruns: Sequence[Difference], shaping: Sequence[Difference], comparison: PlanComparison) -> Iterator[str]:
    if not reruns and not comparison.is_another_plan:
        return
    yield "what the answers depend on is not as it was:"
    yield from _listed(reruns)
    if comparison.is_another_plan:
        yield f"  {_rows_told(comparison)}"
        named = [one for one in shaping if _may_change_rows(one.key, comparison)]
        yield from _listed(named)
        if not named:
            yield "  (no setting that shapes the rows differs: the dataset, prompt or skills files were edited)"
    yield "the run would hold answers of two settings"


def _may_change_rows(key: str, comparison: PlanComparison) -> bool:
    """Whether a setting that only shapes the plan can have made it another one."""
    of_a_new_server = instance_of(key) not in {SETTINGS, INPUTS} and drift_of(key) is not Drift.EXTENDS
    return not of_a_new_server and (comparison.changed_count == 0 or key not in _HOW_MANY)


def _rows_told(comparison: PlanComparison) -> str:
    if comparison.changed_count == 0:
        return f"rows: none of the run's {comparison.planned} planned rollouts is planned by this command"
    named = ", ".join(map(str, comparison.changed))
    more = ", …" if comparison.changed_count > len(comparison.changed) else ""
    return (
        f"rows: {comparison.changed_count} of {comparison.planned} planned rollouts ask something else: {named}{more}"
    )


def _unscored_anew(rescores: Sequence[Difference]) -> Iterator[str]:
    if not rescores:
        return
    yield "what the rewards depend on is not as it was:"
    yield from _listed(rescores)
    yield (
        "the rewards that are saved keep the old verifier's settings; "
        "gym eval reverify has saved answers judged by the new ones"
    )


def _was_given(key: str, given: Collection[str] | None) -> bool:
    """Whether a difference at `key` comes of what somebody wrote; a server's own settings always do."""
    return given is None or instance_of(key) != SETTINGS or step_below(key) in given


def _irrelevant(found: Sequence[Difference]) -> Iterator[str]:
    if found:
        named = ", ".join(one.key for one in found[:_MOST_IRRELEVANT])
        more = f" and {len(found) - _MOST_IRRELEVANT} more" if len(found) > _MOST_IRRELEVANT else ""
        yield f"changed since the run began, without effect on its answers and rewards: {named}{more}"


def _without_effect(shaping: Sequence[Difference], comparison: PlanComparison) -> Iterator[str]:
    effect = f"plans {comparison.added} new rollouts" if comparison.added else "changes no planned rollout"
    yield from (f"{one}; {effect}" for one in shaping)


def _other_length(comparison: PlanComparison) -> Iterator[str]:
    if comparison.added:
        kept = comparison.planned
        yield f"the plan grows by {comparison.added} rollouts; the {kept} that were planned before stand as they are"
    if comparison.missing:
        yield (
            f"this command plans {comparison.missing} rollouts fewer; the saved plan stands: "
            f"the run goes on with its {comparison.planned + comparison.added} planned rollouts"
        )


def _listed(found: Sequence[Difference]) -> Iterator[str]:
    """Yield the differences; what stands for everything below a key says nothing beside a key below it."""
    keys = [one.key for one in found]
    return (f"  {one}" for one in found if not any(key.startswith((f"{one.key}.", f"{one.key}[")) for key in keys))


def _shown(digest: str | None) -> str:
    return "absent" if digest is None else digest[:_SHOWN]
