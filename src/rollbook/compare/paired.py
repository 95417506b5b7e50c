"""One task on two sides, and what a set of such pairs looks like.

Rules:
* Only rewards of scored rollouts are here; a task that has none on one side is no pair.
"""

import math
from array import array
from collections.abc import Iterable
from dataclasses import dataclass

_BINARY = frozenset({0.0, 1.0})


@dataclass(frozen=True, slots=True)
class PairedTask:
    """The rewards of one task's scored repeats on each side, at least one each; their numbers may differ."""

    baseline: tuple[float, ...]
    candidate: tuple[float, ...]

    @property
    def difference(self) -> float:
        """The candidate's mean reward less the baseline's."""
        return math.fsum(self.candidate) / len(self.candidate) - math.fsum(self.baseline) / len(self.baseline)

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
