"""Opening a run: the manifest of a fresh one, and what it takes to go on with one that is there.

Rules:
* Every difference between the run and this command is judged before anything is written.
* A folder without a manifest is adopted: its rows are taken as they are, and its plan stands.

Source: collection.md §1.8, §5.1, §5.2, §5.4; cases RC-16, RC-18, RC-20.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final
from uuid import uuid4

import msgspec
from msgspec.structs import replace
from omegaconf import DictConfig

from rollbook.clock import Clock, timestamp
from rollbook.config.collection import RolloutCollectionConfig
from rollbook.config.missing import resolved
from rollbook.config.roots import resolve_read_path
from rollbook.errors import ResumeRefusedError
from rollbook.inputs.skills import load_skills_of_run
from rollbook.ledger.digests import sha256_of
from rollbook.ledger.history import History, planned_lines
from rollbook.ledger.paths import RunPaths
from rollbook.ledger.reader import Line
from rollbook.records.codec import encode
from rollbook.records.identity import RolloutKey
from rollbook.records.json_values import JsonObject
from rollbook.records.keys import SKILLS_REF_KEY
from rollbook.records.manifest import PlanDigest, RunManifest
from rollbook.records.reading import planned_line
from rollbook.recovery.agreement import WHAT_NEXT, Difference, differences, verdict
from rollbook.recovery.drift import INPUTS, SETTINGS, Drift, instance_of
from rollbook.recovery.fingerprint import configuration_sha256, fingerprints
from rollbook.recovery.plan_digest import PlanComparison, added_lines, compare_plans
from rollbook.recovery.plan_digest import PlanDigest as Digests

Rows = Callable[[], Iterable[JsonObject]]
"""Plans this command's rows, as a fresh run would; called only when they have to be looked at."""
Lines = Callable[[], Iterable[tuple[RolloutKey, bytes]]]
Names = dict[tuple[str | None, str | None], None]
"""The (agent, stamped server) pairs of a plan, each once."""

_ROWS: Final = f"{INPUTS}.input_jsonl_fpath"
_SKILLS: Final = f"{INPUTS}.skills"


_READ: Final = ("input_jsonl_fpath", "prompt_config")
"""Settings that name a file: what is in it counts, and not where it lies."""
_NOT_OF_THE_RUN: Final = {
    *_READ,
    "skills",
    "retry_terminal_timeouts",
    "group_scored",
    "attempt_extension",
    *("allow_unsafe_resume", "output_jsonl_fpath", "overwrite", "resubmit", "resume_from_cache", "take_over"),
}
"""Those, the folder of skills, which is no different, what the manifest holds as it is, and settings that say what one
command does with a run."""


class Terms(msgspec.Struct, frozen=True):
    """What a run's answers depend on, as this command says it.

    `held` are digests of files that are not in place yet, `recorded_skills` the hash that the run has of its skills.
    """

    settings: RolloutCollectionConfig
    config: DictConfig
    cap: int
    held: Mapping[str, str] = msgspec.field(default_factory=dict)
    recorded_skills: str | None = None

    def keys(self, agents: Iterable[str], servers: Iterable[str]) -> dict[str, str]:
        """Return one digest a dotted key for everything that rollouts of `agents` and `servers` depend on."""
        settings = self.settings.model_dump(mode="json", exclude=_NOT_OF_THE_RUN)
        return fingerprints(settings, resolved(self.config), agents, servers) | self.input_keys()

    def input_keys(self) -> dict[str, str]:
        """Return the digests of the files that are read, by dotted keys."""
        return {f"{INPUTS}.{name}": digest for name, digest in self._inputs()}

    def _inputs(self) -> Iterator[tuple[str, str]]:
        """Yield the settings that name what is read, with its digest: what is in it counts, and not where it lies."""
        yield from self.held.items()
        for name in (name for name in _READ if name not in self.held):
            given = getattr(self.settings, name)
            path = resolve_read_path(given) if given is not None else None
            if path is not None and path.is_file():
                yield name, sha256_of(path)
        skills = self.settings.skills
        folder = resolve_read_path(skills.path) if skills is not None else None
        if folder is not None and folder.is_dir():
            yield "skills", load_skills_of_run(folder, self.recorded_skills).hash


class Addition(msgspec.Struct, frozen=True):
    """The rollouts that a command adds to the plan on disk; each call of `planned` plans them anew."""

    rollouts: int = 0
    planned: Lines = lambda: ()

    def lines(self) -> Iterator[Line]:
        """Yield them as lines of a plan, of which nobody knows yet where they will stand."""
        return (Line(0, 0, len(text), text) for _, text in self.planned())


class Agreed(msgspec.Struct, frozen=True):
    """What a run is gone on with: its manifest, what people are told, what drifted, and what its plan grows by."""

    manifest: RunManifest
    notes: list[str]
    drift: list[str]
    addition: Addition


def fresh_manifest(
    terms: Terms, plan: PlanDigest, names: Iterable[tuple[str | None, str | None]], clock: Clock
) -> RunManifest:
    """Return the manifest of a run that starts now; `names` are the (agent, stamped server) pairs of its plan.

    Raises:
        ConfigError: the configuration cannot be resolved.

    """
    return _manifest(terms, plan, terms.keys(*_agents_and_servers(names)), clock)


def unidentified_manifest(terms: Terms, plan: PlanDigest, clock: Clock) -> RunManifest:
    """Return the manifest of a run of whose configuration nothing is known; it covers what the run reads."""
    return _manifest(terms, plan, terms.input_keys(), clock)


def _manifest(terms: Terms, plan: PlanDigest, keys: Mapping[str, str], clock: Clock) -> RunManifest:
    manifest = RunManifest(
        run_id=uuid4().hex,
        created_at=timestamp(clock.now()),
        plan=plan,
        max_rollout_attempts=terms.cap,
        retry_terminal_timeouts=terms.settings.retry_terminal_timeouts,
        group_scored=terms.settings.group_scored,
    )
    return replace(manifest, **_identity(keys))


def adopted_manifest(terms: Terms, history: History, paths: RunPaths, clock: Clock) -> RunManifest:
    """Return the manifest of a folder that has none: its name is the one that its log or all its rows carry."""
    plan = paths.materialized_inputs
    digest = PlanDigest(sha256=sha256_of(plan), bytes=plan.stat().st_size, rollouts=history.plan.rollouts)
    manifest = fresh_manifest(terms, digest, history.plan.first_lines, clock)
    named = [name for name in (history.log.run_id, *history.run_ids) if name is not None]
    run_id = named[0] if named else manifest.run_id
    unreserved = history.standings.unreserved
    return replace(manifest, adopted=True, run_id=run_id, unreserved=unreserved)


def taken_up(manifest: RunManifest, terms: Terms, history: History) -> RunManifest:
    """Return the manifest of a folder that had none when a judge was paid for it, with this command's configuration.

    What is there is mixed with what comes no more than in a folder that is adopted first and judged later.
    """
    keys = terms.keys(*_agents_and_servers(history.plan.first_lines))
    again, together = terms.settings.retry_terminal_timeouts, terms.settings.group_scored
    known = replace(manifest, not_resumable=None, retry_terminal_timeouts=again, group_scored=together)
    return replace(known, **_identity(keys))


def agreed(manifest: RunManifest, terms: Terms, history: History, paths: RunPaths, rows: Rows) -> Agreed:
    """Return what a run is gone on with; nothing is written.

    Raises:
        ResumeRefusedError: going on would mix answers or rewards of two settings.

    """
    if manifest.not_resumable is not None and not terms.settings.allow_unsafe_resume:
        raise ResumeRefusedError(f"{paths.output}: the resume is refused: {manifest.not_resumable}\n{WHAT_NEXT}")
    manifest, told = _with_terminal_timeouts(manifest, terms.settings)
    manifest, together = _with_groups(manifest, terms.settings)
    manifest, extended = _with_more_attempts(manifest, terms)
    terms = replace(terms, recorded_skills=manifest.configuration_keys.get(_SKILLS))
    names: Names = dict.fromkeys(history.plan.first_lines)
    keys = terms.keys(*_agents_and_servers(names))
    found = differences(manifest.configuration_keys, keys)
    unchecked = terms.settings.allow_unsafe_resume and _dataset_is_gone(found)
    comparison, grow = _compared(
        () if unchecked else found, paths, manifest, lambda: _lines(rows(), names, keys.get(_SKILLS))
    )
    agreement = verdict(found, comparison, terms.settings.model_fields_set)
    mixes = agreement.refused is not None
    if mixes and not terms.settings.allow_unsafe_resume:
        raise ResumeRefusedError(f"{paths.output}: {agreement.refused}")
    told = (*told, *together)
    notes = [*told, *extended, *agreement.notes, *([f"resumed all the same: {agreement.mixed}"] if mixes else ())]
    notes += ["resumed all the same: the dataset is gone, and was not compared with the plan"] if unchecked else []
    if comparison.is_another_plan:
        notes.append(
            "the rows of the saved plan are sent as they are; this command's rows, prompt and sampling are not used"
        )
    grows = comparison.added > 0 and not comparison.is_another_plan
    longer = terms.keys(*_agents_and_servers(names)) if grows else keys
    kept = {**manifest.configuration_keys, **_of_new_instances(manifest.configuration_keys, keys, longer)}
    manifest = replace(manifest, **_identity(longer if grows and not mixes else kept))
    if terms.settings.allow_unsafe_resume:
        manifest = replace(manifest, unreserved=history.standings.unreserved)
    drift = [str(one) for one in found if mixes or one.drift is not Drift.IRRELEVANT]
    return Agreed(manifest, notes, drift, Addition(comparison.added, grow) if grows else Addition())


def _with_terminal_timeouts(
    manifest: RunManifest, settings: RolloutCollectionConfig
) -> tuple[RunManifest, tuple[str, ...]]:
    """Let terminal timeouts run again where this command or the run says so, and tell where the two differ."""
    name = "retry_terminal_timeouts"
    if settings.retry_terminal_timeouts and not manifest.retry_terminal_timeouts:
        note = f"{name}=true: terminal timeouts run again; the run keeps it once something is sent"
        return replace(manifest, **{name: True}), (note,)
    if manifest.retry_terminal_timeouts and name in settings.model_fields_set and not settings.retry_terminal_timeouts:
        return manifest, (f"{name}=false does not hold: the run was told before to run terminal timeouts again",)
    return manifest, ()


def _with_groups(manifest: RunManifest, settings: RolloutCollectionConfig) -> tuple[RunManifest, tuple[str, ...]]:
    """Score a task's repeats together where this command or the run says so, and tell where the two differ."""
    name = "group_scored"
    if settings.group_scored and not manifest.group_scored:
        note = f"{name}=true: a task that is not all there runs again whole; the run keeps it once something is sent"
        return replace(manifest, **{name: True}), (note,)
    if manifest.group_scored and name in settings.model_fields_set and not settings.group_scored:
        return manifest, (f"{name}=false does not hold: the run was told before that repeats are scored together",)
    return manifest, ()


def _with_more_attempts(manifest: RunManifest, terms: Terms) -> tuple[RunManifest, tuple[str, ...]]:
    """Let each rollout fail more often where this command says so, and tell whose cap holds where the two differ."""
    more = terms.settings.attempt_extension
    if more > manifest.attempt_extension:
        longer = replace(manifest, attempt_extension=more)
        return longer, (f"attempt_extension={more}: a rollout may fail {longer.attempt_cap} times now",)
    if terms.cap != manifest.max_rollout_attempts:
        holds = f"the run's cap of {manifest.attempt_cap} failures a rollout holds, and not {terms.cap}"
        return manifest, (f"{holds}; to let rollouts fail more often, resume with +attempt_extension=N",)
    return manifest, ()


def _of_new_instances(saved: Mapping[str, str], old: Mapping[str, str], longer: Mapping[str, str]) -> Mapping[str, str]:
    """Return the keys of instances that joined a run with `saved` keys: those that its plan reaches, or its longer one.

    Where an instance is gone from what the `old` plan reaches, what it reaches instead took that one's place.
    """
    known, reached = _instances(saved), _instances(old)
    taken = known if known <= reached else known | reached
    return {key: digest for key, digest in longer.items() if instance_of(key) not in taken}


def _instances(keys: Iterable[str]) -> frozenset[str]:
    return frozenset(instance_of(key) for key in keys) | {SETTINGS, INPUTS}


def _dataset_is_gone(found: Iterable[Difference]) -> bool:
    return any(one.key == _ROWS and one.new is None for one in found)


def _compared(
    found: Iterable[Difference], paths: RunPaths, manifest: RunManifest, lines: Lines
) -> tuple[PlanComparison, Lines]:
    """Return how the lines that this command plans compare with the plan on disk, and those that it adds."""
    if not any(one.drift is Drift.EXTENDS for one in found):
        return PlanComparison.unchanged(manifest.plan.rollouts), lambda: ()
    old = Digests.of((planned_line(line.text).key, line.text) for line in planned_lines(paths, manifest))
    return compare_plans(old, lines()), lambda: added_lines(old, lines())


def _lines(rows: Iterable[JsonObject], names: Names, skills: str | None) -> Iterator[tuple[RolloutKey, bytes]]:
    """Yield `rows` as the run's plan holds them, noting their (agent, stamped server) pairs in `names`.

    `skills` is the hash by which the run knows its skills.
    """
    for row in rows:
        line = encode(_with_skills(row, skills))
        planned = planned_line(line)
        names[planned.agent, planned.server] = None
        yield planned.key, line


def _with_skills(row: JsonObject, known: str | None) -> JsonObject:
    ref = row.get(SKILLS_REF_KEY)
    return row | {SKILLS_REF_KEY: {**ref, "hash": known}} if known is not None and isinstance(ref, dict) else row


def _identity(keys: Mapping[str, str]) -> dict[str, object]:
    return {
        "input_sha256": keys.get(_ROWS),
        "configuration_sha256": configuration_sha256(keys),
        "configuration_keys": dict(keys),
    }


def _agents_and_servers(names: Iterable[tuple[str | None, str | None]]) -> tuple[list[str], list[str]]:
    pairs = list(names)
    agents = sorted({agent for agent, _ in pairs if agent is not None})
    return agents, sorted({server for _, server in pairs if server is not None})
