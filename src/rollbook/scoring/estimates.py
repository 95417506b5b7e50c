"""Means with their standard errors, and pass@k, from the rewards of some tasks.

Rules:
* A standard error is clustered by task: rollouts of one task are not independent measurements.
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
from collections.abc import Sequence
from dataclasses import dataclass

from rollbook.scoring.pass_at_k import pass_at_k
from rollbook.scoring.spread import finite_or_none, mean

Rewards = Sequence[float]
"""The rewards of one task's scored rollouts, in any order."""


@dataclass(frozen=True, slots=True)
class PassAtK:
    """The mean chance, as a fraction, that k rollouts of a task hold a right one.

    `tasks` have at least k scored rollouts and enter `value`; `short_tasks` have fewer and do not. `value` is None when
    no task has enough.
    """

    k: int
    value: float | None
    tasks: int
    short_tasks: int


def mean_reward(tasks: Sequence[Rewards]) -> float | None:
    """Return the mean over all rewards; None of nothing."""
    return mean([reward for rewards in tasks for reward in rewards])


def clustered_standard_error(tasks: Sequence[Rewards]) -> float | None:
    """Return the standard error of `mean_reward(tasks)`; None of fewer than two tasks with rewards."""
    clusters = [rewards for rewards in tasks if rewards]
    center = mean_reward(clusters)
    if center is None or len(clusters) <= 1:
        return None
    count, correction = sum(map(len, clusters)), len(clusters) / (len(clusters) - 1)
    return finite_or_none(lambda: math.sqrt(correction * _sum_of_squared_sums(clusters, center)) / count)


def pass_at_powers(tasks: Sequence[Rewards], most_repeats: int) -> tuple[PassAtK, ...]:
    """Return pass@k for k = 1, 2, 4, … up to `most_repeats`; nothing when a reward is neither 0 nor 1."""
    if any(reward not in (0, 1) for rewards in tasks for reward in rewards):
        return ()
    counts = [(len(rewards), rewards.count(1)) for rewards in tasks]
    return tuple(_pass_at(counts, 1 << power) for power in range(most_repeats.bit_length()))


def _pass_at(counts: Sequence[tuple[int, int]], k: int) -> PassAtK:
    chances = {(n, correct): pass_at_k(n, correct, k) for n, correct in set(counts) if n >= k}
    values = [chances[count] for count in counts if count in chances]
    return PassAtK(k, mean(values), len(values), len(counts) - len(values))


def _sum_of_squared_sums(clusters: Sequence[Rewards], center: float) -> float:
    sums = [math.fsum(reward - center for reward in rewards) for rewards in clusters]
    return math.fsum(total * total for total in sums)
