"""The fold behind the progress line: events → counts that are current after each of them.

Rules:
* A rollout counts once, by the record that stands for it, however many attempts it took.
* The mean is over rollouts whose reward counts, and is always shown with how many it covers.
* What was in flight when the run ended is in flight no longer.
* Adding an event costs the same early and late in a run.

Source: collection.md §3.9.
"""

from collections import Counter
from dataclasses import dataclass, field

from rollbook.records.event import AttemptEnded, AttemptRefused, AttemptStarted, Event, RunEnded, RunPlanned
from rollbook.records.outcome import Evidence, Failed, Interrupted, Masked, NeverStarted, Outcome, Scored, Unscored
from rollbook.records.record import Record
from rollbook.records.standing import Standings

_SECONDS_A_MINUTE = 60.0
_SHORTEST_RATED = 1.0


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Where a run is. Rates are per minute, durations in seconds; `mean_reward` is None while nothing is scored."""

    planned: int = 0
    finished: int = 0
    scored: int = 0
    masked: int = 0
    unscored: int = 0
    failed: int = 0
    interrupted: int = 0
    never_started: int = 0
    in_flight: int = 0
    mean_reward: float | None = None
    elapsed: float = 0.0
    per_minute: float | None = None
    seconds_left: float | None = None
    ended: bool = False


@dataclass(slots=True)
class Progress:
    """Counts of one session of a run. `started_at` is monotonic seconds: when the session began to collect."""

    started_at: float
    _planned: int = 0
    _settled_before: int = 0
    _scored_before: int = 0
    _standings: Standings = field(default_factory=Standings)
    _counts: Counter[type[Outcome]] = field(default_factory=Counter)
    _rewards: float = 0.0
    _in_flight: int = 0
    _ended: bool = False

    @property
    def is_planned(self) -> bool:
        """Whether the plan is known."""
        return self._planned > 0

    def add(self, event: Event) -> None:
        """Fold one event."""
        match event:
            case RunPlanned():
                self._planned, self._settled_before = event.rollouts, event.settled
                self._scored_before, self._rewards = event.settled_scored, event.settled_rewards
            case AttemptStarted():
                self._in_flight += 1
            case AttemptEnded(record=record):
                self._in_flight = max(0, self._in_flight - (0 if isinstance(record.outcome, NeverStarted) else 1))
                self._stand(record)
            case AttemptRefused():
                self._in_flight = max(0, self._in_flight - 1)
            case RunEnded():
                self._ended = True

    def _stand(self, record: Record) -> None:
        before = self._standings.of(record.key)
        self._standings.add(record)
        if before is not None:
            self._count(before.outcome, -1)
        now = self._standings.of(record.key)
        if now is not None:
            self._count(now.outcome, 1)

    def _count(self, outcome: Outcome, by: int) -> None:
        self._counts[type(outcome)] += by
        if isinstance(outcome, Scored):
            self._rewards += by * outcome.reward

    def snapshot(self, now: float) -> Snapshot:
        """Return the counts at `now`, monotonic seconds."""
        counts = self._counts
        here = sum(count for kind, count in counts.items() if kind not in (Evidence, NeverStarted))
        scored = self._scored_before + counts[Scored]
        elapsed = max(0.0, now - self.started_at)
        rate = here / elapsed if here and elapsed >= _SHORTEST_RATED else None
        owed = self._planned - self._settled_before - here - counts[NeverStarted]
        return Snapshot(
            planned=self._planned,
            finished=self._settled_before + here,
            scored=scored,
            masked=counts[Masked],
            unscored=counts[Unscored],
            failed=counts[Failed],
            interrupted=counts[Interrupted],
            never_started=counts[NeverStarted],
            in_flight=0 if self._ended else self._in_flight,
            mean_reward=self._rewards / scored if scored else None,
            elapsed=elapsed,
            per_minute=rate * _SECONDS_A_MINUTE if rate else None,
            seconds_left=max(0, owed) / rate if rate and not self._ended else None,
            ended=self._ended,
        )
