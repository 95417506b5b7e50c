"""How a run is, read from its files by anybody at any time; what a resume would do is asked of the same fold.

Rules:
* Nothing is written, no server is asked, and a run that goes on is not disturbed: results and failures are read up to
  where they were before the log was read.
* What cannot be right is told, file and line, and the rest is counted all the same.

Source: collection.md §5.4, §9.3, §17; cases RC-21, RC-27.
"""

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec
from msgspec.structs import replace

from rollbook.config.attempt_cap import max_rollout_attempts
from rollbook.errors import LedgerError, NoRunError
from rollbook.ledger.contradictions import manifest_gone, told_of_doubles, unplanned
from rollbook.ledger.history import History, check_plan, prefixes, read_history
from rollbook.ledger.lock import holder_of
from rollbook.ledger.manifest_store import SessionLog
from rollbook.ledger.paths import RunPaths
from rollbook.records.command import typed
from rollbook.records.coverage import Coverage, covered
from rollbook.records.disposition import Disposition, Rules
from rollbook.records.group_count import GroupCount, coverage_of
from rollbook.records.identity import RolloutKey
from rollbook.records.manifest import SessionEntry
from rollbook.records.run_status import (
    WITH_TASK,
    Damage,
    GroupStatus,
    RunState,
    RunStatus,
    SessionStatus,
    not_owed_by,
    owed_by,
)
from rollbook.records.story import AllNotScored, NotScored, Story
from rollbook.scoring.run_headlines import run_headlines
from rollbook.verbs.coverage_file import chosen_before
from rollbook.verbs.story import told

_DAMAGES_KEPT: Final = 1000
_FIRST_NAMED: Final = 20


class Reading(msgspec.Struct, frozen=True):
    """A run's files, folded, and the rules that hold for it."""

    paths: RunPaths
    history: History
    rules: Rules
    damage: tuple[Damage, ...]

    @property
    def is_alive(self) -> bool:
        """Whether a process works on the run."""
        return self.rules.live_session is not None

    @property
    def has_plan(self) -> bool:
        """Whether anything says what was planned; where nothing does, what records name is all that is known."""
        return _has_history(self.paths)

    @property
    def faults(self) -> tuple[Damage, ...]:
        """The damage, without what results have that lie alone: no plan was written that they could contradict."""
        if self.history.manifest is not None or self.paths.materialized_inputs.exists():
            return self.damage
        alone = {_damage(error, self.paths) for error in unplanned(self.paths, self.history.standings)}
        return tuple(one for one in self.damage if one not in alone)


def read_run(output: Path, *, with_tokens: bool = True) -> Reading:
    """Fold the files of the run at `output`; damage is collected, not raised. Tokens are added up where wanted.

    Raises:
        NoRunError: there is neither a plan, a manifest or a log, nor any record that can be read.

    """
    paths = RunPaths(output.resolve() if output.is_symlink() else output)
    was_alive = _is_held(paths)
    reading = _read(paths, with_tokens=with_tokens)
    ended_meanwhile = was_alive and not reading.is_alive
    reading = _read(paths, with_tokens=with_tokens) if ended_meanwhile else reading
    if not len(reading.history.standings) and not _has_history(paths):
        raise NoRunError(
            f"{output}: no run is there: no record can be read, and there is no plan, manifest or log beside it; "
            "give a run's output, its folder, or a pattern in quotes"
        )
    return reading


def _has_history(paths: RunPaths) -> bool:
    return any(path.exists() for path in (paths.materialized_inputs, paths.manifest, paths.manifest_log))


def _read(paths: RunPaths, *, with_tokens: bool) -> Reading:
    damage: list[LedgerError] = []
    history = read_history(paths, prefixes(paths), damage.append, with_tokens=with_tokens)
    if history.manifest is not None:
        try:
            check_plan(paths, history.manifest)
        except LedgerError as error:
            damage.append(error)
    damage += manifest_gone(paths, history.log)
    if _has_history(paths):
        damage += unplanned(paths, history.standings)
    rules = _rules(history, live_session=history.log.session if _is_held(paths) else None)
    named = tuple(_damage(error, paths) for error in damage[:_DAMAGES_KEPT])
    return Reading(paths, history, rules, named)


def _is_held(paths: RunPaths) -> bool:
    """Whether a process works on the run now."""
    return paths.lock.exists() and holder_of(paths.lock) is not None


def run_status(output: Path) -> RunStatus:
    """Return how the run at `output` is, without its headlines."""
    return _status(read_run(output))


def status_with_headlines(output: Path) -> RunStatus:
    """Return the same with them: what its last session chose to count as zero is counted."""
    reading = read_run(output)
    counting, min_coverage = chosen_before(reading.paths.coverage)
    found = run_headlines(reading.history.standings, reading.rules, counting, min_coverage)
    return replace(_status(reading), headlines=dict(found))


def _status(reading: Reading) -> RunStatus:
    history, standings = reading.history, reading.history.standings
    groups, unplanned = standings.counted(reading.rules, of_plan_only=reading.has_plan)
    coverage = coverage_of(groups, unplanned=unplanned)
    return RunStatus(
        output=reading.paths.output,
        state=_state(reading, coverage),
        run_id=history.manifest.run_id if history.manifest else history.log.run_id,
        managed=history.manifest is not None,
        coverage=coverage,
        groups=tuple(map(group_status, groups)),
        sessions=tuple(_sessions(history)),
        attempts=standings.attempts_handed_out(),
        refused=standings.refused_attempts,
        cap=reading.rules.cap,
        owed_by=owed_by(coverage),
        not_owed_by=not_owed_by(coverage),
        damage=reading.damage,
        started_at=history.manifest.created_at if history.manifest else None,
        elapsed_s=sum(session.active for session in history.log.sessions) if history.log.sessions else None,
        tokens=history.tokens.counts(),
        notes=tuple(_notes(reading)),
        has_plan=reading.has_plan,
        run_elsewhere=_run_elsewhere(history),
        input=reading.paths.materialized_inputs if _runs_its_own_plan(history) else None,
    )


def _runs_its_own_plan(history: History) -> bool:
    """Whether the rows of the run are those of its plan, as those of a recorded call are."""
    manifest = history.manifest
    return manifest is not None and manifest.input_sha256 == manifest.plan.sha256


def _run_elsewhere(history: History) -> str | None:
    """Return why no session goes on with what was imported or merged; None of any other run."""
    manifest = history.manifest
    return manifest.not_resumable if manifest is not None and manifest.was_run_elsewhere else None


def story_of(output: Path, key: RolloutKey) -> Story:
    """Return what happened to one rollout of the run at `output`."""
    reading = read_run(output)
    standing = reading.history.standings.standing(key, reading.rules)
    story = told(reading.paths, reading.history, standing, alive=reading.is_alive)
    story = replace(story, damage=reading.damage)
    why = _run_elsewhere(reading.history)
    return replace(story, resume=f"nothing: {why}") if why is not None and standing.is_owed else story


def not_scored(output: Path) -> AllNotScored:
    """Return the rollouts of the run at `output` that are not scored, by what would happen to them."""
    reading = read_run(output)
    found: dict[tuple[str, bool], list[RolloutKey]] = {}
    counts: Counter[tuple[str, bool]] = Counter()
    goes_on = _run_elsewhere(reading.history) is None
    for standing in reading.history.standings.standings(reading.rules):
        if (standing.planned or not reading.has_plan) and (
            standing.with_task or standing.disposition is not Disposition.SCORED
        ):
            why = (WITH_TASK, True) if standing.with_task else _why(standing.disposition)
            counts[why] += 1
            named = found.setdefault(why, [])
            named += [standing.key][: _FIRST_NAMED - len(named)]
    groups = (NotScored(why, owed and goes_on, counts[why, owed], tuple(keys)) for (why, owed), keys in found.items())
    return AllNotScored(tuple(groups), reading.damage)


def _why(disposition: Disposition) -> tuple[str, bool]:
    """Return the reason that a status gives for `disposition`, and whether a resume would run it."""
    one = covered({disposition: 1}, {}, None, 0)
    owed, other = owed_by(one), not_owed_by(one)
    return next(iter([*owed, *other, "in flight"])), bool(owed)


def _rules(history: History, live_session: int | None) -> Rules:
    manifest = history.manifest
    if manifest is None:
        return Rules(cap=max_rollout_attempts(os.environ), live_session=live_session)
    return Rules(
        cap=manifest.attempt_cap,
        retry_terminal_timeouts=manifest.retry_terminal_timeouts,
        rerun_masked=manifest.rerun_masked,
        released=manifest.released,
        group_scored=manifest.group_scored,
        live_session=live_session,
    )


def _state(reading: Reading, coverage: Coverage) -> RunState:
    if reading.damage or not coverage.law_holds:
        return RunState.DAMAGED
    if reading.is_alive:
        return RunState.RUNNING
    goes_on = coverage.owed and _run_elsewhere(reading.history) is None
    return RunState.INTERRUPTED if goes_on else RunState.FINISHED


def group_status(count: GroupCount) -> GroupStatus:
    """Return the counts of one agent and environment server as a status tells them."""
    kinds = dict(sorted(count.kinds.items()))
    return GroupStatus(count.agent, count.server, count.coverage, count.mean_reward, kinds, count.final_zeros)


def _sessions(history: History) -> Iterator[SessionStatus]:
    entries = {entry.number: entry for entry in history.manifest.sessions} if history.manifest else {}
    for log in history.log.sessions:
        yield _session(log, entries.get(log.number))


def _session(log: SessionLog, entry: SessionEntry | None) -> SessionStatus:
    return SessionStatus(
        number=log.number,
        opened_at=log.opened_at,
        closed_at=log.closed_at,
        how=log.how,
        host=entry.host if entry else "",
        pid=entry.pid if entry else 0,
        command=typed(entry.command) if entry else "",
    )


def _notes(reading: Reading) -> Iterator[str]:
    if not reading.has_plan:
        yield "there is no plan: what was not recorded is not known, and no share of the counts speaks for a plan"
    if reading.history.manifest is None and not reading.damage:
        yield "the run has no manifest: attempts are counted by their saved failures"
    if reading.history.manifest is not None and reading.history.manifest.adopted:
        yield "the folder was taken up from a collector that writes no manifest"
    elif reading.history.manifest is not None and (others := reading.history.run_ids[None]):
        yield f"{others} record{'s' * (others > 1)} name{'s' * (others == 1)} no run: another collector went on with it"
    yield from told_of_doubles(reading.paths, reading.history.standings)
    yield from map(str, reading.history.manifest.approvals if reading.history.manifest else ())
    torn = reading.paths.output.parent.glob(f"{reading.paths.output.stem}*.torn")
    yield from (f"bytes that were never committed are kept in {path}" for path in sorted(torn))


def _damage(error: LedgerError, paths: RunPaths) -> Damage:
    """Split a message into where it points at and what it says."""
    text = str(error)
    for path in paths.every_file:
        if text.startswith(str(path)):
            place, _, what = text.removeprefix(str(path)).partition(": ")
            return Damage(f"{path}{place}", what)
    return Damage(str(paths.output), text)
