"""The fold behind the progress line: events → counts that are current after each of them.

Rules:
* A rollout counts once, by the record that stands for it, however many attempts it took.
* A rollout that stands without a score is remembered in a few bytes; a scored one is not sent again in its session.
* The mean is over rollouts whose reward counts, and is always shown with how many it covers; a failure that its
  producer marks as a score of 0 is one of them.
* What was in flight when the run ended is in flight no longer.
* What is left takes no time that anybody knows while nothing is sent.
* Adding an event costs the same early and late in a run.

Source: collection.md §3.9.
"""

from collections import Counter
from typing import Final

import msgspec

from rollbook.records.coverage import Coverage
from rollbook.records.event import (
    Admission,
    AdmissionChanged,
    AttemptCut,
    AttemptEnded,
    AttemptRefused,
    AttemptStarted,
    ConcurrencyChanged,
    Event,
    RunEnded,
    RunPlanned,
    RunRead,
)
from rollbook.records.marks import Marks
from rollbook.records.outcome import Evidence, Failed, Interrupted, Masked, NeverStarted, Scored, Unscored
from rollbook.records.record import Record
from rollbook.records.sent_again import SentAgain


class _Zero:
    """A failure that its producer marks as a score of 0."""


_REMEMBERED: Final[tuple[type, ...]] = (Masked, Unscored, Failed, Interrupted, NeverStarted, Evidence, _Zero)
_MARKS: Final[dict[type, int]] = {kind: mark for mark, kind in enumerate(_REMEMBERED, 1)}
_SECONDS_A_MINUTE = 60.0
_SHORTEST_RATED = 1.0


class Snapshot(msgspec.Struct, frozen=True):
    """Where a run is. Rates are per minute, durations in seconds; `mean_reward` is None while nothing is scored.

    `limit` rollouts may be in flight; None where that is not known. `again` wait to be sent again; `again_why` is what
    the latest of them met, None once something ended since. `zeros` of the failed ones are a score of 0.
    """

    planned: int = 0
    finished: int = 0
    scored: int = 0
    zeros: int = 0
    masked: int = 0
    unscored: int = 0
    failed: int = 0
    interrupted: int = 0
    never_started: int = 0
    in_flight: int = 0
    again: int = 0
    again_why: str | None = None
    limit: int | None = None
    admission: Admission = Admission.OPEN
    mean_reward: float | None = None
    elapsed: float = 0.0
    per_minute: float | None = None
    seconds_left: float | None = None
    ended: bool = False


class Progress(msgspec.Struct):
    """Counts of one session of a run. `started_at` is monotonic seconds: when the session began to collect."""

    started_at: float
    _planned: int = 0
    _settled_before: int = 0
    _scored_before: int = 0
    _zeros_before: int = 0
    _marks: Marks = msgspec.field(default_factory=Marks)
    _counts: Counter[type] = msgspec.field(default_factory=Counter)
    _rewards: float = 0.0
    _in_flight: int = 0
    _limit: int | None = None
    _again: SentAgain = msgspec.field(default_factory=SentAgain)
    _admission: Admission = Admission.OPEN
    _is_read: bool = False
    _ended: bool = False
    endings: int = 0
    """How many attempts ended."""

    @property
    def is_planned(self) -> bool:
        """Whether the plan is known."""
        return self._planned > 0

    def add(self, event: Event) -> None:
        """Fold one event."""
        if isinstance(event, AttemptStarted):
            self._in_flight += 1
            self._again.started(event.key)
        elif isinstance(event, AttemptEnded):
            self._end(event.record)
        elif isinstance(event, AttemptRefused | AttemptCut):
            self._in_flight = max(0, self._in_flight - 1)
            self._again.put_off(event)
        else:
            self._add_rare(event)

    def _add_rare(self, event: Event) -> None:
        match event:
            case RunPlanned():
                self._planned, self._settled_before = event.rollouts, event.settled
                self._scored_before, self._rewards = event.settled_scored, event.settled_rewards
                self._zeros_before = event.settled_zeros
            case ConcurrencyChanged(server=None):
                self._limit = event.limit
            case AdmissionChanged(admission):
                self._admission = admission
            case RunRead():
                self._read(event.coverage, event.rewards, event.zeros)
            case RunEnded():
                self._ended = True
            case _:
                pass

    def _read(self, coverage: Coverage, rewards: float, zeros: int) -> None:
        """Take over what others left on disk; how fast they went is not known."""
        self._is_read, self._settled_before, self._scored_before, self._zeros_before = True, 0, 0, 0
        self._rewards = rewards
        self._counts = Counter(
            {
                Scored: coverage.scored,
                Masked: coverage.masked,
                Unscored: coverage.unscored,
                Failed: coverage.failed - zeros,
                _Zero: zeros,
                Interrupted: coverage.interrupted,
                NeverStarted: coverage.never_started,
            }
        )

    def _end(self, record: Record) -> None:
        outcome = record.outcome
        kind = _Zero if isinstance(outcome, Failed) and outcome.counts_as_zero else type(outcome)
        self.endings += 1
        self._again.ended()
        if kind is not NeverStarted and self._in_flight:
            self._in_flight -= 1
        mark = self._marks.of(record.key)
        if mark:
            if kind is NeverStarted or kind is Evidence:
                return
            self._counts[_REMEMBERED[mark - 1]] -= 1
        self._counts[kind] += 1
        if isinstance(outcome, Scored):
            self._rewards += outcome.reward
        if mark or kind is not Scored:
            self._marks.put(record.key, _MARKS.get(kind, 0))

    def snapshot(self, now: float) -> Snapshot:
        """Return the counts at `now`, monotonic seconds."""
        counts = self._counts
        here = sum(count for kind, count in counts.items() if kind not in (Evidence, NeverStarted))
        scored = self._scored_before + counts[Scored]
        zeros = self._zeros_before + counts[_Zero]
        elapsed = max(0.0, now - self.started_at)
        rate = here / elapsed if here and elapsed >= _SHORTEST_RATED and not self._is_read else None
        goes_on = self._admission is Admission.OPEN and self._in_flight > 0 and not self._ended
        owed = self._planned - self._settled_before - here - counts[NeverStarted]
        return Snapshot(
            planned=self._planned,
            finished=self._settled_before + here,
            scored=scored,
            zeros=zeros,
            masked=counts[Masked],
            unscored=counts[Unscored],
            failed=counts[Failed] + counts[_Zero],
            interrupted=counts[Interrupted],
            never_started=counts[NeverStarted],
            in_flight=0 if self._ended else self._in_flight,
            again=0 if self._ended else len(self._again),
            again_why=self._again.why,
            limit=self._limit,
            admission=self._admission,
            mean_reward=self._rewards / (scored + zeros) if scored + zeros else None,
            elapsed=elapsed,
            per_minute=rate * _SECONDS_A_MINUTE if rate else None,
            seconds_left=max(0, owed) / rate if rate and goes_on else None,
            ended=self._ended,
        )
