"""How large the difference between two runs may be: an interval for the mean over tasks of their differences.

Rules:
* Tasks are drawn, whole: the interval is clustered by task whatever their repeats.
* The bootstrap's quantiles are widened for few tasks, where plain ones are too narrow; of very many tasks the interval
  is Student's, to which it comes close.

With n tasks, the quantile taken for a tail of a/2 is the one at Phi(-sqrt(n / (n - 1)) t), t Student's at 1 - a/2.

Source: Efron 1979; Hesterberg 2015, "What Teachers Should Know About the Bootstrap" (expanded percentile interval).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Final

from rollbook.compare.draws import Draws, seeded
from rollbook.scoring.spread import mean, quantile, sample_std
from rollbook.scoring.student_t import t_quantile

MOST_DRAWS: Final = 10_000
FEWEST_DRAWS: Final = 1_000
_WORK: Final = 4_000_000


@dataclass(frozen=True, slots=True)
class Interval:
    """Both ends, None of fewer than two tasks, and how they were had: `bootstrap`, `student` or `none`."""

    low: float | None
    high: float | None
    how: str


def standard_error(differences: Sequence[float]) -> float | None:
    """Return the standard error of the mean of tasks' differences; None of fewer than two."""
    spread = sample_std(differences)
    return None if spread is None else spread / math.sqrt(len(differences))


def difference_interval(differences: Sequence[float], *, level: float = 0.95, seed: int = 0) -> Interval:
    """Return the interval of the mean of `differences`, one a task."""
    count, tail = len(differences), (1 - level) / 2
    error = standard_error(differences)
    center = mean(differences)
    if error is None or center is None:
        return Interval(None, None, "none")
    student = t_quantile(1 - tail, count - 1)
    draws = min(MOST_DRAWS, _WORK // count)
    if draws < FEWEST_DRAWS:
        return Interval(center - student * error, center + student * error, "student")
    means = _drawn_means(differences, draws, seeded(seed))
    share = NormalDist().cdf(-math.sqrt(count / (count - 1)) * student)
    return Interval(quantile(means, share), quantile(means, 1 - share), "bootstrap")


def _drawn_means(differences: Sequence[float], draws: int, chance: Draws) -> list[float]:
    count = len(differences)
    return sorted(math.fsum(chance.choices(differences, k=count)) / count for _ in range(draws))
