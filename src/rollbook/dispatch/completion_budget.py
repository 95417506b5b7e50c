"""How long rollouts take, and whether there is time to start another.

Rules:
* Durations are of rollouts that brought a result; one that failed says nothing of how long the next will need.
* A rollout is refused when nothing is left of the budget, or less than it is likely to need: the margin that was
  given, or else the upper quartile of what others took, once five of them are known.

Source: collection.md §3.5.
"""

from bisect import insort
from dataclasses import dataclass, field
from typing import Final

from rollbook.dispatch.budget import ENOUGH, UPPER_QUARTILE, too_late

_MINUTE: Final = 60.0
_HOUR: Final = 3600.0


@dataclass(frozen=True, slots=True)
class LatencySummary:
    """The figures of a tracker: minutes of the rollouts that brought a result, and how many were never started."""

    count: int
    median_min: float | None
    p90_min: float | None
    p99_min: float | None
    max_min: float | None
    task_hours: float
    drained: int

    def __str__(self) -> str:
        """Say them in a line."""
        named = {"median": self.median_min, "p90": self.p90_min, "p99": self.p99_min, "max": self.max_min}
        minutes = [f"{name} {value:.2f} min" for name, value in named.items() if value is not None]
        hours = f"{self.task_hours:.2f} task-hours delivered"
        return ", ".join([f"{self.count} rollouts", *minutes, hours, f"{self.drained} not started for want of time"])


@dataclass(slots=True)
class DispatchLatencyTracker:
    """Takes down how long each rollout took that brought a result, over one call of `run_examples` or several."""

    drained: int = 0
    _seconds: list[float] = field(default_factory=list)
    _total: float = 0.0

    @property
    def count(self) -> int:
        """How many durations are known."""
        return len(self._seconds)

    def record(self, seconds: float) -> None:
        """Take down a rollout that brought a result after `seconds`, the reply's body included."""
        insort(self._seconds, seconds)
        self._total += seconds

    def record_drained(self) -> None:
        """Take down a rollout that was not started for want of time."""
        self.drained += 1

    def quantile(self, share: float) -> float | None:
        """Return the seconds below which `share` of the durations lie, by linear interpolation; None of nothing."""
        if not self._seconds:
            return None
        place = share * (len(self._seconds) - 1)
        below = int(place)
        above = min(below + 1, len(self._seconds) - 1)
        return self._seconds[below] + (self._seconds[above] - self._seconds[below]) * (place - below)

    def summary(self) -> LatencySummary:
        """Return the figures so far."""
        median, p90, p99, most = (self._minutes(share) for share in (0.5, 0.9, 0.99, 1.0))
        return LatencySummary(self.count, median, p90, p99, most, self._total / _HOUR, self.drained)

    def _minutes(self, share: float) -> float | None:
        seconds = self.quantile(share)
        return None if seconds is None else seconds / _MINUTE


@dataclass(frozen=True, slots=True)
class DispatchBudget:
    """The time until which rollouts may start. `deadline` is None for no end; `margin` is in seconds."""

    tracker: DispatchLatencyTracker
    deadline: float | None = None
    margin: float | None = None

    def refusal(self, now: float) -> str | None:
        """Return why no rollout may start `now`; None when one may."""
        if self.deadline is None:
            return None
        why = too_late(self.deadline - now, self._needed())
        return None if why is None else f"not dispatched: {why}"

    def _needed(self) -> float | None:
        if self.margin is not None:
            return self.margin
        return self.tracker.quantile(UPPER_QUARTILE) if self.tracker.count >= ENOUGH else None
