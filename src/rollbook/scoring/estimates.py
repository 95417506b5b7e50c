"""Means with their standard errors, and pass@k, from the rewards of tasks that come one by one.

Rules:
* A standard error is clustered by task: rollouts of one task are not independent measurements.
* Tasks come one after the other, and none is kept: what is kept is sums and counts.
* pass@k is defined for rewards of 0 and 1 alone, and speaks for the tasks with at least k scored rollouts; how many
  tasks have fewer is part of the answer.

With n rewards r of G tasks and their mean m, the standard error of m is

    sqrt( G / (G - 1) * sum over tasks of (sum over the task's rewards of (r - m))² ) / n

which is the plain sample standard deviation / sqrt(n) when every task has one rollout. Of fewer than two tasks it is
undefined.

Source: Miller 2024, "Adding Error Bars to Evals" (arXiv:2411.00640), §2.2, with the usual correction G / (G - 1) for
few clusters (Cameron and Miller 2015, §II.B); Chen et al. 2021 (arXiv:2107.03374), §2.1 for pass@k; case RC-74.
"""

import math
from collections import Counter
from collections.abc import Sequence
from itertools import chain, repeat

import msgspec

from rollbook.scoring.exact_sum import ExactSum
from rollbook.scoring.pass_at_k import pass_at_k
from rollbook.scoring.spread import finite_or_none

Rewards = list[float]
"""The rewards of one task's scored rollouts, in any order."""


class PassAtK(msgspec.Struct, frozen=True):
    """The mean chance, as a fraction, that k rollouts of a task hold a right one.

    `tasks` have at least k scored rollouts and enter `value`; `short_tasks` have fewer and do not. `value` is None when
    no task has enough.
    """

    k: int
    value: float | None
    tasks: int
    short_tasks: int


class ClusteredError(msgspec.Struct):
    """The standard error of the mean of all rewards, which is `center`."""

    center: float
    _tasks: int = 0
    _rewards: int = 0
    _squares: ExactSum = msgspec.field(default_factory=ExactSum)

    def add(self, rewards: Rewards) -> None:
        """Take in a task that has rewards."""
        self.add_all((rewards,))

    def add_all(self, tasks: Sequence[Rewards]) -> None:
        """Take in tasks that have rewards."""
        center = self.center
        self._tasks += len(tasks)
        self._rewards += sum(map(len, tasks))
        totals = [math.fsum([reward - center for reward in rewards]) for rewards in tasks]
        self._squares.add([total * total for total in totals])

    def value(self) -> float | None:
        """Return the standard error; None of fewer than two tasks."""
        if self._tasks <= 1:
            return None
        correction = self._tasks / (self._tasks - 1)
        return finite_or_none(lambda: math.sqrt(correction * self._squares.value()) / self._rewards)


class PassAtPowers(msgspec.Struct):
    """pass@k of tasks, for k = 1, 2, 4 and so on, as long as every reward is 0 or 1."""

    _counts: Counter[tuple[int, int]] = msgspec.field(default_factory=Counter)
    _is_binary: bool = True

    def add(self, rewards: Rewards) -> None:
        """Take in a task, which may have no rewards."""
        right = rewards.count(1)
        if right + rewards.count(0) == len(rewards):
            self._counts[len(rewards), right] += 1
        else:
            self._is_binary = False

    def values(self, most_repeats: int) -> tuple[PassAtK, ...]:
        """Return pass@k for k up to `most_repeats`; nothing when a reward is neither 0 nor 1."""
        if not self._is_binary:
            return ()
        return tuple(self._at(1 << power) for power in range(most_repeats.bit_length()))

    def _at(self, k: int) -> PassAtK:
        enough = [(pass_at_k(n, right, k), count) for (n, right), count in self._counts.items() if n >= k]
        tasks = sum(count for _, count in enough)
        total = math.fsum(chain.from_iterable(repeat(chance, count) for chance, count in enough))
        return PassAtK(k, total / tasks if tasks else None, tasks, self._counts.total() - tasks)
