"""Events → the lines that are told as they happen: notes, failures, refusals, stalls, changes of the limit.

Rules:
* The first failures of each class and cause are told in full; the rest are counted, so that a log stays small.
* The first attempt that each server turns away with each status is told; how many wait is on the progress line.
* A limit is told when it halved at once or moved by a factor of two since it was last told, and not every few seconds.
* What ends well is told by the progress line alone, and costs one look at its type here.
* Text that came from data is escaped.

Source: collection.md §3.9; cases RC-56, RC-61.
"""

from collections import Counter
from typing import Final

from rollbook.live.escape import escaped
from rollbook.live.line import duration
from rollbook.records.event import (
    AttemptCut,
    AttemptEnded,
    AttemptRefused,
    AttemptStarted,
    ConcurrencyChanged,
    Event,
    RunNoted,
    RunPlanned,
    RunStalled,
    Waiting,
)
from rollbook.records.outcome import Failed, Interrupted, Scored
from rollbook.records.record import Record

_TOLD_PER_CLASS: Final = 3
_TOLD_IN_ALL: Final = 100
_LONGEST_MESSAGE: Final = 200
_LONGEST_CAUSE: Final = 160
_WAITING_TOLD: Final = 5
_LIMIT_EVERY_S: Final = 10.0
_KEPT: Final = "\n\t"
_SILENT: Final = (AttemptStarted, AttemptCut)


def is_silent(event: Event) -> bool:
    """Whether `event` is counted and nothing else: most are."""
    if isinstance(event, AttemptEnded):
        return isinstance(event.record.outcome, Scored)
    return isinstance(event, _SILENT)


class Notices:
    """What is told of each event besides the progress line."""

    def __init__(self) -> None:
        self._failures = FailureLines()
        self._limits = LimitLines()
        self._refusals = RefusalLines()

    def line_for(self, event: Event) -> str | None:
        """Return the line that tells of `event`, or None when it is only counted."""
        if isinstance(event, AttemptEnded):
            return self._failures.line_for(event.record, event.cause)
        if isinstance(event, AttemptRefused):
            return self._refusals.line_for(event)
        return self._rare(event)

    def _rare(self, event: Event) -> str | None:
        if isinstance(event, RunNoted):
            return escaped(event.text, _KEPT)
        if isinstance(event, RunPlanned):
            return plan_line(event)
        if isinstance(event, RunStalled):
            return escaped(stall_line(event))
        if isinstance(event, ConcurrencyChanged):
            return self._limits.line_for(event)
        return None


class FailureLines:
    """Which failures are told in full: the first of each class and cause, and no more than some in all."""

    def __init__(self) -> None:
        self._told: Counter[tuple[str, str]] = Counter()
        self._left = _TOLD_IN_ALL

    def line_for(self, record: Record, cause: str | None = None) -> str | None:
        """Return the line that tells of `record` and its `cause`, or None when it is only counted."""
        outcome = record.outcome
        if not self._left or not isinstance(outcome, Failed | Interrupted):
            return None
        why = (cause or "")[:_LONGEST_CAUSE]
        told = self._told[outcome.failure_class, why] + 1
        if told > _TOLD_PER_CLASS:
            return None
        self._told[outcome.failure_class, why] = told
        self._left -= 1
        said = ": ".join(part for part in (outcome.message[:_LONGEST_MESSAGE], why) if part)
        return escaped(f"rollout {record.key} {outcome.failure_class}: {said}{self._more(told)}")

    def _more(self, told: int) -> str:
        if not self._left:
            return " (further failures are counted)"
        return " (further ones of this class are counted)" if told == _TOLD_PER_CLASS else ""


class RefusalLines:
    """Which attempts that never ran are told: the first of each server and status."""

    def __init__(self) -> None:
        self._told: set[tuple[str, int | None]] = set()

    def line_for(self, event: AttemptRefused) -> str | None:
        """Return the line that tells of `event`, or None when its like was told."""
        kind = (event.server, event.status)
        if kind in self._told or len(self._told) == _TOLD_IN_ALL:
            return None
        self._told.add(kind)
        server = event.server or "a server"
        what = f"{server} cannot be reached" if event.status is None else f"{server} turned rollouts away"
        long = "" if event.retry_for is None else f" for up to {event.retry_for:g} s (--retry-for)"
        return escaped(f"{what}: {event.why}; they are sent again{long}")


class LimitLines:
    """Which changes of the limit in all are told."""

    def __init__(self) -> None:
        self._limit: int | None = None
        self._told = 0
        self._told_at: float | None = None

    def line_for(self, event: ConcurrencyChanged) -> str | None:
        """Return the line that tells of a change; None when it is small, soon after another, or one server's."""
        if event.server is not None:
            return None
        before, self._limit = self._limit, event.limit
        if before is None:
            self._told = event.limit
            return None
        moved = _doubled(self._told, event.limit) or _doubled(event.limit, self._told)
        soon = self._told_at is not None and event.at - self._told_at < _LIMIT_EVERY_S
        if soon or event.limit == self._told or not (moved or _doubled(event.limit, before)):
            return None
        told, self._told, self._told_at = self._told, event.limit, event.at
        return escaped(f"at most {event.limit} rollouts in flight from now on, {told} before: {event.why}")


def _doubled(low: int, high: int) -> bool:
    return high >= 2 * low


def plan_line(plan: RunPlanned) -> str:
    """Return how much is planned."""
    settled = f", {plan.settled} of them settled before" if plan.settled else ""
    return f"{plan.tasks} tasks, {plan.rollouts} rollouts planned{settled}"


def stall_line(stalled: RunStalled) -> str:
    """Return which rollouts keep a run waiting: the longest waiting ones by name, the others by their number."""
    named = stalled.longest[:_WAITING_TOLD]
    waiting = [_waiting(one) for one in named]
    if stalled.count > len(named):
        waiting.append(f"and {stalled.count - len(named)} more")
    return f"nothing ended for {duration(stalled.seconds)}; {stalled.count} in flight: {'; '.join(waiting)}"


def _waiting(one: Waiting) -> str:
    return f"{one.key} {one.phase} for {duration(one.seconds)} on {one.host} ({one.server})"
