"""Decisions about a run: more attempts for all, and which masked or held rollouts run again.

Rules:
* A decision is about what is there now, attempt by attempt: what fails or is masked later is not in it.
* What keeps a model's answer is never run again as if it were infrastructure's fault: a judge can have it.
* It is written under the run's lock, with who took it and why, and nothing is sent.

Source: collection.md §4.7, §4.10, §5.4.2, §5.4.3.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from rollbook.clock import Clock, timestamp
from rollbook.errors import ConfigError, DamagedRunError
from rollbook.ledger.manifest_store import write_manifest
from rollbook.ledger.paths import RunPaths
from rollbook.ledger.run import Run, explained
from rollbook.records.approval import Approval, Attempt
from rollbook.records.command import resume_words, typed
from rollbook.records.coverage import Coverage
from rollbook.records.disposition import Disposition, Rules
from rollbook.records.identity import RolloutKey
from rollbook.records.manifest import RunManifest
from rollbook.records.outcome import Masked
from rollbook.records.place import File
from rollbook.records.record import Record
from rollbook.records.rejudgment import holds_saved_answer
from rollbook.records.resubmission import Resubmission
from rollbook.records.standing import Standings
from rollbook.recovery.damage import refusal
from rollbook.verbs.reverify_answers import row_at
from rollbook.verbs.status import Reading, read_run

_HELD: Final = frozenset({Disposition.HELD, Disposition.HELD_INTERRUPTED})
_RUNS: Final = ("eval", "run")


@dataclass(frozen=True, slots=True)
class Decision:
    """What a person wants: `masked` rollouts by name, and of the rest those that keep no answer (`infrastructure`)."""

    who: str
    why: str
    attempts_more: int = 0
    masked: Collection[RolloutKey] = field(default_factory=tuple)
    infrastructure: bool = False
    release_held: bool = False


def proposed(output: Path, decision: Decision, clock: Clock) -> Resubmission:
    """Return what `decision` would let run again at `output`; nothing is written.

    Raises:
        NoRunError, ConfigError, DamagedRunError: no run is there that could be gone on with, a masked rollout is none,
            or keeps an answer, or nothing is there that the decision would be about.

    """
    reading = read_run(output)
    manifest = _manifest(reading)
    return _resubmission(reading, manifest, _approval(reading, decision, clock))


def approve(output: Path, decision: Decision, clock: Clock) -> Resubmission:
    """Write `decision` into the manifest of the run at `output`, and return what it lets run again.

    Raises:
        LedgerError: a process works on the run, or the manifest cannot be written.
        NoRunError, ConfigError, DamagedRunError: as for a proposal.

    """
    paths = RunPaths(output.resolve() if output.is_symlink() else output)
    _manifest(read_run(output))
    run = Run(paths, clock)
    with run.claimed():
        reading = read_run(output)
        told = _resubmission(reading, _manifest(reading), _approval(reading, decision, clock))
        with explained(paths, paths.manifest):
            write_manifest(paths.manifest, _approved(_manifest(reading), told.approval))
    return told


def _manifest(reading: Reading) -> RunManifest:
    manifest = reading.history.manifest
    if reading.damage:
        raise DamagedRunError(refusal([f"{one.place}: {one.what}" for one in reading.damage]))
    if manifest is None:
        raise ConfigError(
            f"{reading.paths.output}: the run has no manifest in which a decision could stand; take the folder up with "
            "gym eval run … --resume first"
        )
    return manifest


def _approval(reading: Reading, decision: Decision, clock: Clock) -> Approval:
    standings, rules = reading.history.standings, replace(reading.rules, live_session=None)
    masked = {_named(reading, key) for key in decision.masked}
    released: set[Attempt] = set()
    for standing in standings.standings(rules):
        record = standing.record
        if record is None or not standing.planned:
            continue
        if decision.release_held and standing.disposition in _HELD:
            released.add(_attempt(record))
        elif decision.infrastructure and standing.disposition is Disposition.MASKED:
            masked |= set() if _keeps_answer(reading, record) else {_attempt(record)}
    if not (masked or released or decision.attempts_more):
        raise ConfigError(_nothing_found(reading.paths, decision))
    return Approval(
        at=timestamp(clock.now()),
        who=decision.who,
        why=decision.why,
        attempts_more=decision.attempts_more,
        masked=tuple(sorted(masked)),
        released=tuple(sorted(released)),
    )


def _nothing_found(paths: RunPaths, decision: Decision) -> str:
    sought = [
        *(["no rollout is held"] if decision.release_held else []),
        *(["no masked result is without a model's answer"] if decision.infrastructure else []),
    ]
    return (
        f"{paths.output}: {', and '.join(sought)}: there is nothing to decide, and nothing was written; "
        f"gym eval status {paths.output} tells how its rollouts stand"
    )


def _named(reading: Reading, key: RolloutKey) -> Attempt:
    record = reading.history.standings.of(key)
    if record is None or not isinstance(record.outcome, Masked):
        raise ConfigError(
            f"{reading.paths.output}: rollout {key} has no masked result; gym eval explain {reading.paths.output} "
            f"{key.task} {key.rollout} tells how it stands"
        )
    if _keeps_answer(reading, record):
        raise ConfigError(
            f"{reading.paths.output}: the masked result of rollout {key} keeps a model's answer, which is not thrown "
            "away; have it judged again with gym eval reverify"
        )
    return _attempt(record)


def _attempt(record: Record) -> Attempt:
    return record.key.task, record.key.rollout, record.attempt


def _keeps_answer(reading: Reading, record: Record) -> bool:
    if record.place is None or record.place.file is not File.RESULTS:
        return True
    return holds_saved_answer(row_at(reading.paths, record.place))


def _approved(manifest: RunManifest, approval: Approval) -> RunManifest:
    return replace(
        manifest,
        attempt_extension=manifest.attempt_extension + approval.attempts_more,
        rerun_masked=manifest.rerun_masked | {*approval.masked},
        released=manifest.released | {*approval.released},
        approvals=(*manifest.approvals, approval),
    )


def _resubmission(reading: Reading, manifest: RunManifest, approval: Approval) -> Resubmission:
    standings, before = reading.history.standings, replace(reading.rules, live_session=None)
    later = _approved(manifest, approval)
    after = replace(before, cap=later.attempt_cap, rerun_masked=later.rerun_masked, released=later.released)
    return Resubmission(
        output=str(reading.paths.output),
        approval=approval,
        cap=later.attempt_cap,
        before=_coverage(standings, before),
        after=_coverage(standings, after),
        command=_command(reading.paths, manifest),
        is_alive=reading.is_alive,
    )


def _coverage(standings: Standings, rules: Rules) -> Coverage:
    return standings.coverage(rules=rules)


def _command(paths: RunPaths, manifest: RunManifest) -> str:
    """Return the command that goes on with the run: the latest one that ran it, or what wrote it."""
    commands = list(_commands(manifest))
    if not commands:
        return f"gym eval run … --resume --output {paths.output}"
    return typed(resume_words(commands[-1], str(paths.output)))


def _commands(manifest: RunManifest) -> Iterator[tuple[str, ...]]:
    for session in manifest.sessions:
        if session.command and (manifest.reverified is not None or session.command[1:3] == _RUNS):
            yield session.command
