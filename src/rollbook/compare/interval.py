"""How large the difference between two runs may be: an interval for the mean over tasks of their differences.

Rules:
* Tasks are drawn, whole: the interval is clustered by task whatever their repeats.
* The bootstrap's quantiles are widened for few tasks, where plain ones are too narrow; of very many tasks the interval
  is Student's, to which it comes close.
* Tasks that differ all alike have no spread to go by. Where rewards lie within 0..1, what n of them leave open is
  exact: if more than a share of 1 - (a/2)^(1/n) of all tasks differed otherwise, one among n would have shown it with a
  chance of 1 - a/2, and such a task differs by 1 at most. Elsewhere there is no interval.

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
_ALIKE: Final = 1e-12


@dataclass(frozen=True, slots=True)
class Interval:
    """Both ends, None where nothing tells them, and how they were had: `bootstrap`, `student`, `exact` or `none`."""

    low: float | None
    high: float | None
    how: str


_NONE: Final = Interval(None, None, "none")


def standard_error(differences: Sequence[float]) -> float | None:
    """Return the standard error of the mean of tasks' differences; None of fewer than two."""
    spread = sample_std(differences)
    return None if spread is None else spread / math.sqrt(len(differences))


def is_alike(spread: float, center: float) -> bool:
    """Whether a spread around a mean is no more than rounding."""
    return spread <= _ALIKE * max(1.0, abs(center))


def difference_interval(
    differences: Sequence[float], *, level: float = 0.95, seed: int = 0, within_unit: bool = False
) -> Interval:
    """Return the interval of the mean of `differences`, one a task; `within_unit`: no reward lies outside 0..1."""
    count, tail = len(differences), (1 - level) / 2
    error = standard_error(differences)
    center = mean(differences)
    if error is None or center is None:
        return _NONE
    if is_alike(error * math.sqrt(count), center):
        return _of_alike(center, tail ** (1 / count)) if within_unit else _NONE
    student = t_quantile(1 - tail, count - 1)
    draws = min(MOST_DRAWS, _WORK // count)
    if draws < FEWEST_DRAWS:
        return Interval(center - student * error, center + student * error, "student")
    means = _drawn_means(differences, draws, seeded(seed))
    share = NormalDist().cdf(-math.sqrt(count / (count - 1)) * student)
    return Interval(quantile(means, share), quantile(means, 1 - share), "bootstrap")


def _of_alike(center: float, least: float) -> Interval:
    """Return the interval where at least a share of `least` differs by `center`, and the rest by anything possible."""
    rest = 1 - least
    return Interval(least * center - rest, least * center + rest, "exact")


def _drawn_means(differences: Sequence[float], draws: int, chance: Draws) -> list[float]:
    count = len(differences)
    return sorted(math.fsum(chance.choices(differences, k=count)) / count for _ in range(draws))
