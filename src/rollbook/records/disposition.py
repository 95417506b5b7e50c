"""What becomes of a rollout next: the one place that says whether a resume would run it, and why not.

Rules:
* Pure: a standing and the run's rules in, one `Disposition` out. Whoever counts or resumes asks here.
* Only rows that name a run are held; a folder without a manifest is resumed by the count of its failures alone.

Source: collection.md §4.8, §4.10, §5.4.2, §5.4.3, §17.1.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

import msgspec

from rollbook.records.failure_kinds import JUDGE_FAILED
from rollbook.records.outcome import Evidence, Failed, Interrupted, Masked, NeverStarted, Result, Scored, Unscored
from rollbook.records.record import Record

DEFAULT_CAP: Final = 3
_RETRIED_TIMEOUTS: Final = frozenset({"timeout_exceeded", "reference_missing", "eval_missing", "transport_ineligible"})
_ALWAYS_SETTLED: Final = frozenset({"skipped"})


class Disposition(StrEnum):
    """Where a rollout stands, split by what a resume would do with it."""

    SCORED = "scored"
    MASKED = "masked"
    UNSCORED = "unscored"
    APPROVED = "approved"
    RETRYABLE = "retryable"
    SETTLED = "settled"
    EXHAUSTED = "exhausted"
    HELD = "held"
    INTERRUPTED = "interrupted"
    HELD_INTERRUPTED = "held_interrupted"
    NEVER_STARTED = "never_started"
    IN_FLIGHT = "in_flight"
    UNTOUCHED = "untouched"


OWED: Final = frozenset(
    {
        Disposition.APPROVED,
        Disposition.RETRYABLE,
        Disposition.INTERRUPTED,
        Disposition.NEVER_STARTED,
        Disposition.UNTOUCHED,
    }
)
"""What a resume would run."""


class Rules(msgspec.Struct, frozen=True):
    """What decides about another attempt.

    `cap`: failures that a rollout may have. `retry_terminal_timeouts`: terminal failures of the timeout classes run
    again. `release_held`: held rollouts run again. `rerun_masked`: (task, rollout, attempt) of masked results that an
    operator approved to run again; `released`: the same of attempts that are held. `live_session`: the session that
    runs now, if any. `group_scored`: a task's repeats are scored together, and run again together.
    """

    cap: int = DEFAULT_CAP
    retry_terminal_timeouts: bool = False
    release_held: bool = False
    rerun_masked: frozenset[tuple[int, int, int]] = frozenset()
    live_session: int | None = None
    group_scored: bool = False
    released: frozenset[tuple[int, int, int]] = frozenset()


DEFAULT_RULES: Final = Rules()
_PLAIN: Final[Mapping[type, Disposition]] = {
    Scored: Disposition.SCORED,
    Unscored: Disposition.UNSCORED,
    NeverStarted: Disposition.NEVER_STARTED,
    Evidence: Disposition.INTERRUPTED,
}


def disposition_of(record: Record | None, spent: int, rules: Rules) -> Disposition:
    """Return where a rollout stands of which `record` stands and whose failures used `spent` of the cap."""
    if record is None:
        return Disposition.UNTOUCHED
    holds = record.run_id is not None and not (rules.release_held or _named(record, rules.released))
    match record.outcome:
        case Masked():
            return Disposition.APPROVED if _named(record, rules.rerun_masked) else Disposition.MASKED
        case Failed() as failed:
            return _failed(failed, spent, rules, holds=holds)
        case Interrupted() as interrupted:
            return _interrupted(interrupted, holds=holds)
        case other:
            return _PLAIN[type(other)]


def is_terminal_failure(failed: Failed, *, retry_terminal_timeouts: bool) -> bool:
    """Whether no further attempt is made whatever the cap. Source: collection.md §4.8."""
    if not retry_terminal_timeouts:
        return failed.terminal
    classes = {failed.failure_class, failed.legacy_class}
    if classes & _ALWAYS_SETTLED:
        return True
    return failed.terminal and not classes & _RETRIED_TIMEOUTS


def is_result(record: Record | None) -> bool:
    """Whether a result stands."""
    return record is not None and isinstance(record.outcome, Result)


def _failed(failed: Failed, spent: int, rules: Rules, *, holds: bool) -> Disposition:
    if is_terminal_failure(failed, retry_terminal_timeouts=rules.retry_terminal_timeouts):
        return Disposition.SETTLED
    if holds and (failed.failure_class == JUDGE_FAILED or failed.saved_answer):
        return Disposition.HELD
    return Disposition.EXHAUSTED if spent >= rules.cap else Disposition.RETRYABLE


def _interrupted(interrupted: Interrupted, *, holds: bool) -> Disposition:
    return Disposition.HELD_INTERRUPTED if holds and not interrupted.may_replay else Disposition.INTERRUPTED


def _named(record: Record, attempts: frozenset[tuple[int, int, int]]) -> bool:
    return bool(attempts) and (record.key.task, record.key.rollout, record.attempt) in attempts
