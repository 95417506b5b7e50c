"""The tasks of a run that a person looks at first.

Rules:
* Tasks come one after the other; only the worst of them are kept, `MOST` at most.
* A task that no other task does better than is not among them.
"""

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import msgspec

from rollbook.records.coverage import Coverage

MOST: Final = 100


class TaskScore(msgspec.Struct, frozen=True):
    """One task under one agent: its mean reward (None when nothing is scored) and how its rollouts stand.

    `coverage.planned` counts the rollouts that records speak about.
    """

    agent: str
    task: int
    mean: float | None
    coverage: Coverage


class _Candidate(NamedTuple):
    """A task, as it compares with others: the least first."""

    has_mean: bool
    mean: float
    scored_less_all: int
    agent: str
    task: int
    kinds: tuple[int, ...]


class WorstTasks(msgspec.Struct):
    """Those of which nothing is scored first, then those of the lowest mean reward."""

    _kept: list[_Candidate] = msgspec.field(default_factory=list)
    _bar: _Candidate | None = None
    _best: float | None = None

    def add(self, agent: str, task: int, mean: float | None, scored: int, kinds: Sequence[int]) -> None:
        """Take in a task, `scored` of whose rollouts have a reward, by the kind of ending of each rollout."""
        if mean is not None and (self._best is None or mean > self._best):
            self._best = mean
        candidate = _Candidate(mean is not None, mean or 0.0, scored - len(kinds), agent, task, tuple(kinds))
        if self._bar is None or candidate < self._bar:
            self._kept.append(candidate)
            if len(self._kept) >= 2 * MOST:
                self._prune()

    def _prune(self) -> None:
        self._kept.sort()
        del self._kept[MOST:]
        self._bar = self._kept[-1]

    def scores(self, covered: Callable[[Sequence[int]], Coverage]) -> tuple[TaskScore, ...]:
        """Return the tasks, the worst first; `covered` says how rollouts stand by the kinds of their endings."""
        worst = [one for one in sorted(self._kept)[:MOST] if not one.has_mean or one.mean != self._best]
        return tuple(
            TaskScore(one.agent, one.task, one.mean if one.has_mean else None, covered(one.kinds)) for one in worst
        )
