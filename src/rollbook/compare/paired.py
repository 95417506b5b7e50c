"""One task on two sides, and what a set of such pairs looks like.

Rules:
* Only rewards of scored rollouts are here; a task that has none on one side is no pair.
* Means that rounding alone tells apart are one mean, wherever a difference is looked at: the mean of three 0.1 is not
  quite 0.1.
"""

import math
from array import array
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

_BINARY = frozenset({0.0, 1.0})
_ROUNDED: Final = 1e-12
"""Of the size of what means were made of, what rounding may make of their difference."""


def beyond_rounding(difference: float, size: float) -> float:
    """Return a difference of values of that `size`; 0 where rounding alone makes it."""
    return 0.0 if abs(difference) <= _ROUNDED * size < math.inf else difference


def tied(before: float, after: float, size: float) -> tuple[float, float]:
    """Return two means of values of that `size`; the first twice where rounding alone tells them apart."""
    return (before, after) if beyond_rounding(after - before, size) else (before, before)


@dataclass(frozen=True, slots=True)
class PairedTask:
    """The rewards of one task's scored repeats on each side, at least one each; their numbers may differ."""

    baseline: tuple[float, ...]
    candidate: tuple[float, ...]

    @property
    def means(self) -> tuple[float, float]:
        """The mean reward of either side, the baseline's first; the same where rounding alone tells them apart."""
        before, after = (math.fsum(rewards) / len(rewards) for rewards in (self.baseline, self.candidate))
        if before == after:
            return before, after
        return tied(before, after, max(map(abs, (*self.baseline, *self.candidate))))

    @property
    def difference(self) -> float:
        """The candidate's mean reward less the baseline's."""
        before, after = self.means
        return after - before

    @property
    def is_binary(self) -> bool:
        """Whether every reward is 0 or 1."""
        return _BINARY.issuperset(self.baseline) and _BINARY.issuperset(self.candidate)

    @property
    def is_single(self) -> bool:
        """Whether there is one repeat on each side."""
        return len(self.baseline) == len(self.candidate) == 1


def differences_of(tasks: Iterable[PairedTask]) -> "array[float]":
    """Return the tasks' differences, in their order."""
    return array("d", (task.difference for task in tasks))
