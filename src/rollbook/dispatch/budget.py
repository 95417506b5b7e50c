"""The time in which rollouts may start, and whether one that starts now is likely to end in it.

Rules:
* The time counts from the beginning of collection; a budget of 0 is spent when it begins.
* The margin is what a caller says, or the run's own 75th percentile once five rollouts have ended, linear between
  two; before that there is none.
* Only rollouts that came to a result say how long one takes.

Source: collection.md §3.5.
"""

import heapq
from typing import Final

from rollbook.dispatch.policy import Budget

ENOUGH: Final = 5
"""Rollouts that have ended before they say how long one takes."""
UPPER_QUARTILE: Final = 0.75
EXHAUSTED: Final = "dispatch budget exhausted"


def too_late(left: float, margin: float | None) -> str | None:
    """Return why nothing is to start with `left` seconds left of a budget; None when something may."""
    if left <= 0:
        return EXHAUSTED
    if margin is not None and left < margin:
        return f"{left:.0f}s left in dispatch budget, below the {margin:.0f}s drain margin"
    return None


class UpperQuartile:
    """The 75th percentile of numbers that come one by one: the lower ones in one heap, the others in another."""

    def __init__(self) -> None:
        self._lower: list[float] = []
        self._upper: list[float] = []

    def __len__(self) -> int:
        """Return how many numbers came."""
        return len(self._lower) + len(self._upper)

    def add(self, number: float) -> None:
        """Take one number in."""
        heapq.heappush(self._upper, -heapq.heappushpop(self._lower, -number))
        while len(self._lower) <= int(UPPER_QUARTILE * (len(self) - 1)):
            heapq.heappush(self._lower, -heapq.heappop(self._upper))

    def value(self) -> float:
        """Return the percentile of at least one number."""
        below, above = -self._lower[0], self._upper[0] if self._upper else -self._lower[0]
        position = UPPER_QUARTILE * (len(self) - 1)
        return below + (above - below) * (position - int(position))


class Spending:
    """A budget that began `at` so many seconds, and is used up at its `deadline`."""

    def __init__(self, budget: Budget, at: float) -> None:
        self._budget = budget
        self.deadline = at + budget.seconds
        self._took = UpperQuartile()

    def took(self, seconds: float) -> None:
        """Note how long a rollout took that came to a result."""
        if self._budget.margin is None:
            self._took.add(seconds)

    def refusal(self, now: float) -> str | None:
        """Return why nothing is to start any more, or None when something may."""
        return too_late(self.deadline - now, self._margin())

    def _margin(self) -> float | None:
        if self._budget.margin is not None:
            return self._budget.margin
        return self._took.value() if len(self._took) >= ENOUGH else None
