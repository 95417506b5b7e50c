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
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

from rollbook.records.columns import PLANNED
from rollbook.records.standing import Standings
from rollbook.records.table import NO_ROW, SCORED_KIND
from rollbook.scoring.exact_sum import ExactSum, Mean
from rollbook.scoring.headline import CONFIDENCE, Range
from rollbook.scoring.spread import finite_or_none
from rollbook.scoring.student_t import t_quantile


@dataclass(frozen=True, slots=True)
class RetryBias:
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


class Measurement(NamedTuple):
    """A scored rollout: of which task and agent, whether a later attempt was needed, and its reward."""

    task: int
    agent: str | None
    later: bool
    reward: float


@dataclass(slots=True)
class _Two:
    """The rewards of both kinds."""

    first: Mean = field(default_factory=Mean)
    later: Mean = field(default_factory=Mean)


@dataclass(slots=True)
class _Spread:
    """What tasks come to whose rewards are compared with the means of their kinds."""

    counts: tuple[int, int]
    means: tuple[float, float]
    tasks: int = 0
    squares: ExactSum = field(default_factory=ExactSum)

    def add(self, scored: list[Measurement]) -> None:
        self.tasks += 1
        influence = math.fsum(
            (1 if one.later else -1) * (one.reward - self.means[one.later]) / self.counts[one.later] for one in scored
        )
        self.squares.add((influence * influence,))

    def error(self) -> float | None:
        if self.tasks <= 1:
            return None
        return finite_or_none(lambda: math.sqrt(self.tasks / (self.tasks - 1) * self.squares.value()))


def retry_biases(standings: Standings) -> tuple[RetryBias, ...]:
    """Return the comparison for every agent that has scored rollouts of both kinds, by name."""
    if not any(standings.table.attempts):
        return ()
    return compared(lambda: _scored(standings))


def compared(scored: Callable[[], Iterable[Measurement]]) -> tuple[RetryBias, ...]:
    """Return the comparison of `scored`, whose tasks come one after the other; they are gone through twice."""
    sums: defaultdict[str | None, _Two] = defaultdict(_Two)
    for one in scored():
        (sums[one.agent].later if one.later else sums[one.agent].first).add([one.reward])
    spreads = {agent: spread for agent, two in sums.items() if (spread := _spread(two)) is not None}
    for _, of_task in groupby(scored() if spreads else (), itemgetter(0)):
        by_agent: defaultdict[str | None, list[Measurement]] = defaultdict(list)
        for one in of_task:
            by_agent[one.agent].append(one)
        for agent, theirs in by_agent.items():
            if agent in spreads:
                spreads[agent].add(theirs)
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


def _scored(standings: Standings) -> Iterator[Measurement]:
    columns, table = standings.columns, standings.table
    for number, seat in standings.in_order():
        row = columns.row[seat]
        if row != NO_ROW and table.kinds[row] == SCORED_KIND:
            planned = bool(columns.flags[seat] & PLANNED)
            agent = columns.names[columns.group[seat]][0] if planned else table.sources[table.origins[row]][1]
            yield Measurement(number >> 32, agent, table.attempts[row] > 0, table.rewards[row])
