"""What share of the plan has which standing.

Rules:
* The law: every planned rollout is counted exactly once.
* What a resume would run is a part of the same count, never a second one.

Source: collection.md §1.12, §6.6, §17.1.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Final

import msgspec

from rollbook.records.disposition import OWED, Disposition
from rollbook.records.together import reason_of


class Coverage(msgspec.Struct, frozen=True):
    """How many of the planned rollouts stand where.

    `planned = scored + masked + unscored + failed + interrupted + never_started + in_flight + untouched`;
    `failed = retryable + settled + exhausted + held`; `approved` masked results run again; `held_interrupted` of the
    interrupted ones are not run again by themselves; `unplanned` rollouts left records and are in no plan.
    `failed_by_class` splits `failed` by the class of the failure that stands. `with_task` counts, by where they stand,
    rollouts that a resume would leave but for their task, whose repeats are scored together and are not all there.
    `final_zeros` of the settled ones are a score of 0 by their producer's word: they are completed. `disputed` are
    those of any part of which one attempt has several results that differ.
    """

    planned: int
    scored: int = 0
    masked: int = 0
    unscored: int = 0
    failed: int = 0
    interrupted: int = 0
    never_started: int = 0
    in_flight: int = 0
    untouched: int = 0
    failed_by_class: Mapping[str, int] = msgspec.field(default_factory=dict)
    retryable: int = 0
    settled: int = 0
    exhausted: int = 0
    held: int = 0
    approved: int = 0
    held_interrupted: int = 0
    unplanned: int = 0
    with_task: Mapping[str, int] = msgspec.field(default_factory=dict)
    final_zeros: int = 0
    disputed: int = 0

    @property
    def settled_with_result(self) -> int:
        """Rollouts that left a result, whatever it says."""
        return self.scored + self.masked + self.unscored

    @property
    def completed(self) -> int:
        """Rollouts that are done with: they left a result, or a failure that is a score of 0 for good."""
        return self.settled_with_result + self.final_zeros

    @property
    def missing(self) -> int:
        """Rollouts that left neither a result nor a failure."""
        return self.interrupted + self.never_started + self.in_flight + self.untouched

    @property
    def owed(self) -> int:
        """Rollouts that a resume would run."""
        runs_again = self.approved + self.retryable + self.interrupted - self.held_interrupted
        return runs_again + self.never_started + self.untouched + self.with_their_tasks

    @property
    def with_their_tasks(self) -> int:
        """Rollouts that a resume would run for the sake of their tasks alone."""
        return sum(self.with_task.values())

    @property
    def law_holds(self) -> bool:
        """Whether every planned rollout is counted exactly once, and no other one left a record."""
        parts = (self.failed, self.interrupted, self.never_started, self.in_flight, self.untouched)
        counted = self.planned == self.settled_with_result + sum(parts)
        return min(parts) >= 0 and counted and self.unplanned == 0


_FAILED: Final = (Disposition.RETRYABLE, Disposition.SETTLED, Disposition.EXHAUSTED, Disposition.HELD)
_NONE: Final[Mapping[Disposition, int]] = {}
FAILED_DISPOSITIONS: Final = frozenset(_FAILED)


def covered(
    counts: Mapping[Disposition, int],
    classes: Mapping[str, int],
    planned: int | None,
    unplanned: int,
    with_task: Mapping[Disposition, int] = _NONE,
    *,
    final_zeros: int = 0,
    disputed: int = 0,
) -> Coverage:
    """Return the coverage that `counts` come to; of `planned` rollouts, those that are not counted are untouched."""
    total = sum(counts.values())
    untouched = counts.get(Disposition.UNTOUCHED, 0) + (0 if planned is None else planned - total)
    return Coverage(
        planned=total if planned is None else planned,
        scored=counts.get(Disposition.SCORED, 0),
        masked=counts.get(Disposition.MASKED, 0) + counts.get(Disposition.APPROVED, 0),
        unscored=counts.get(Disposition.UNSCORED, 0),
        failed=sum(counts.get(part, 0) for part in _FAILED),
        interrupted=counts.get(Disposition.INTERRUPTED, 0) + counts.get(Disposition.HELD_INTERRUPTED, 0),
        never_started=counts.get(Disposition.NEVER_STARTED, 0),
        in_flight=counts.get(Disposition.IN_FLIGHT, 0),
        untouched=untouched,
        failed_by_class=dict(sorted(classes.items())),
        retryable=counts.get(Disposition.RETRYABLE, 0),
        settled=counts.get(Disposition.SETTLED, 0),
        exhausted=counts.get(Disposition.EXHAUSTED, 0),
        held=counts.get(Disposition.HELD, 0),
        approved=counts.get(Disposition.APPROVED, 0),
        held_interrupted=counts.get(Disposition.HELD_INTERRUPTED, 0),
        unplanned=unplanned,
        with_task=_by_reason(with_task),
        final_zeros=final_zeros,
        disputed=disputed,
    )


def _by_reason(counts: Mapping[Disposition, int]) -> Mapping[str, int]:
    reasons: Counter[str] = Counter()
    for disposition, count in counts.items():
        reasons[reason_of(disposition)] += count
    return dict(sorted(reasons.items()))


def runs_again(disposition: Disposition) -> bool:
    """Whether a resume would run a rollout that stands at `disposition`."""
    return disposition in OWED
