"""Whether rollouts that needed several attempts score differently.

Rules:
* Scored rollouts alone are compared: those whose first attempt left the result, and those of which a later one did.
* Rollouts of one task are not independent: the interval of the difference is clustered by task.
* Where one of the two kinds is not there, nothing is said.

With m the mean of the later rewards and m' that of the first ones, of n and n' rollouts, each task has the influence

    sum over its later rewards of (r - m) / n - sum over its first rewards of (r - m') / n'

and the variance of m - m' is G / (G - 1) times the sum of the squares over the G tasks.

Source: Cameron and Miller 2015, §II.B: a regression of the reward on whether it came later.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from typing import NamedTuple

import msgspec

from rollbook.records.columns import PLANNED
from rollbook.records.headline import Range
from rollbook.records.standing import Standings
from rollbook.records.table import NO_ROW, SCORED_KIND
from rollbook.scoring.exact_sum import ExactSum, Mean
from rollbook.scoring.headline import CONFIDENCE
from rollbook.scoring.spread import finite_or_none
from rollbook.scoring.student_t import t_quantile


class RetryBias(msgspec.Struct, frozen=True):
    """One agent's rollouts scored at their first attempt, and those scored later: how many, and their mean rewards.

    `interval` is the 95 % interval of `difference`, the later mean minus the first one; None where tasks show no
    spread, or there are fewer than two.
    """

    agent: str | None
    first: int
    later: int
    first_mean: float
    later_mean: float
    difference: float
    interval: Range | None

    @property
    def is_clear(self) -> bool:
        """Whether the interval leaves no difference out."""
        return self.interval is not None and not self.interval.low <= 0 <= self.interval.high


class OfTask(NamedTuple):
    """The rewards of one task's scored rollouts under one agent: left by a first attempt, and by a later one."""

    agent: str | None
    first: list[float]
    later: list[float]


class _Two(msgspec.Struct):
    """The rewards of both kinds."""

    first: Mean = msgspec.field(default_factory=Mean)
    later: Mean = msgspec.field(default_factory=Mean)


class _Spread(msgspec.Struct):
    """What tasks come to whose rewards are compared with the means of their kinds."""

    counts: tuple[int, int]
    means: tuple[float, float]
    tasks: int = 0
    squares: ExactSum = msgspec.field(default_factory=ExactSum)

    def add(self, task: OfTask) -> None:
        self.tasks += 1
        influence = self._share(task.later, 1) - self._share(task.first, 0)
        self.squares.add((influence * influence,))

    def _share(self, rewards: list[float], kind: int) -> float:
        return math.fsum([reward - self.means[kind] for reward in rewards]) / self.counts[kind]

    def error(self) -> float | None:
        if self.tasks <= 1:
            return None
        return finite_or_none(lambda: math.sqrt(self.tasks / (self.tasks - 1) * self.squares.value()))


def retry_biases(standings: Standings) -> tuple[RetryBias, ...]:
    """Return the comparison for every agent that has scored rollouts of both kinds, by name."""
    if not any(standings.table.attempts):
        return ()
    return compared(lambda: _tasks(standings))


def compared(tasks: Callable[[], Iterable[OfTask]]) -> tuple[RetryBias, ...]:
    """Return the comparison of `tasks`, which are gone through twice."""
    sums: defaultdict[str | None, _Two] = defaultdict(_Two)
    for task in tasks():
        two = sums[task.agent]
        two.first.add(task.first)
        two.later.add(task.later)
    spreads = {agent: spread for agent, two in sums.items() if (spread := _spread(two)) is not None}
    for task in tasks() if spreads else ():
        if task.agent in spreads:
            spreads[task.agent].add(task)
    return tuple(_bias(agent, spreads[agent]) for agent in sorted(spreads, key=str))


def _spread(two: _Two) -> _Spread | None:
    first, later = two.first.value(), two.later.value()
    if first is None or later is None:
        return None
    return _Spread((two.first.count, two.later.count), (first, later))


def _bias(agent: str | None, spread: _Spread) -> RetryBias:
    (first, later), (first_mean, later_mean) = spread.counts, spread.means
    difference, error = later_mean - first_mean, spread.error()
    interval = None
    if error:
        reach = t_quantile(0.5 + CONFIDENCE / 2, spread.tasks - 1) * error
        interval = Range(difference - reach, difference + reach)
    return RetryBias(agent, first, later, first_mean, later_mean, difference, interval)


def _tasks(standings: Standings) -> Iterator[OfTask]:
    rows, table, names = standings.columns.row, standings.table, _Names(standings)
    attempts, kinds, rewards = table.attempts, table.kinds, table.rewards
    for _, of_task in groupby(standings.in_order(), lambda at: at[0] >> 32):
        found: dict[str | None, OfTask] = {}
        for _, seat in of_task:
            row = rows[seat]
            if row == NO_ROW or kinds[row] != SCORED_KIND:
                continue
            agent = names.of(seat, row)
            task = found.get(agent)
            if task is None:
                task = found[agent] = OfTask(agent, [], [])
            (task.later if attempts[row] else task.first).append(rewards[row])
        yield from found.values()


class _Names:
    """Whose a rollout is: its plan's agent's, else its record's."""

    def __init__(self, standings: Standings) -> None:
        self._columns, self._table = standings.columns, standings.table
        self._planned = [agent for agent, _ in standings.columns.names]

    def of(self, seat: int, row: int) -> str | None:
        if self._columns.flags[seat] & PLANNED:
            return self._planned[self._columns.group[seat]]
        return self._table.sources[self._table.origins[row]][1]
