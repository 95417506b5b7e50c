"""Sums and means of numbers that come one after the other, exact, whoever many they are.

Rules:
* A sum is rounded once, when it is asked for: it has the digits that `math.fsum` over all numbers has.
* What is kept is a few numbers, not every number that came.

The remainder of a rounded sum is a sum again; a handful of such sums hold all that so many numbers come to.
"""

import math
from collections.abc import Iterable
from typing import Final

import msgspec

from rollbook.scoring.spread import finite_or_none

_AT_ONCE: Final = 1024


class ExactSum(msgspec.Struct):
    """A growing sum, without bound in how many numbers it takes."""

    _parts: list[float] = msgspec.field(default_factory=list)

    def add(self, values: Iterable[float]) -> None:
        """Add numbers."""
        self._parts += values
        if len(self._parts) >= _AT_ONCE:
            self._parts = _folded(self._parts)

    def value(self) -> float:
        """Return the sum. Raises OverflowError where it is too large for a float."""
        return math.fsum(self._parts)


class Mean(msgspec.Struct):
    """The arithmetic mean of numbers that come one after the other."""

    count: int = 0
    _sum: ExactSum = msgspec.field(default_factory=ExactSum)

    def add(self, values: list[float]) -> None:
        """Take numbers in."""
        self.count += len(values)
        self._sum.add(values)

    def value(self) -> float | None:
        """Return the mean; None of nothing, and where the sum is too large for a float."""
        return finite_or_none(lambda: self._sum.value() / self.count) if self.count else None


def _folded(numbers: list[float]) -> list[float]:
    """Return a few numbers with exactly the same sum; infinity where it is too large for a float."""
    parts: list[float] = []
    try:
        while part := math.fsum(numbers):
            if not math.isfinite(part):
                return [part]
            parts.append(part)
            numbers.append(-part)
    except OverflowError:
        return [math.inf]
    return parts
