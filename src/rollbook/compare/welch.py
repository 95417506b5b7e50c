"""Two means whose spreads may differ: Welch's interval of their difference, and his test.

Rules:
* Two values a side are the least.
* Two sides without any spread beyond rounding have an interval of no width, as the field's report shows it, and no
  p-value: nothing that decides is built on it.

Source: Welch 1947, "The generalization of Student's problem when several different population variances are involved".
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from rollbook.compare.paired import beyond_rounding
from rollbook.scoring.spread import mean, sample_std
from rollbook.scoring.student_t import t_quantile, upper_tail

ALPHA: Final = 0.05


@dataclass(frozen=True, slots=True)
class Welch:
    """The candidate's mean less the baseline's, its standard error, and the degrees of freedom of that."""

    delta: float
    error: float
    degrees: float

    @property
    def has_spread(self) -> bool:
        """Whether the values of either side differ among each other."""
        return self.error > 0

    @property
    def p_value(self) -> float | None:
        """The two-sided p-value; None without any spread."""
        return 2 * upper_tail(abs(self.delta) / self.error, self.degrees) if self.has_spread else None

    def interval(self, alpha: float = ALPHA) -> tuple[float, float]:
        """Return the two-sided interval at the level of 1 - `alpha`."""
        reach = t_quantile(1 - alpha / 2, self.degrees) * self.error
        return self.delta - reach, self.delta + reach


def welch(baseline: Sequence[float], candidate: Sequence[float]) -> Welch | None:
    """Return how two sides' means differ; None of too few values, or of values too large for it."""
    spread, other = sample_std(baseline), sample_std(candidate)
    center, other_center = mean(baseline), mean(candidate)
    if spread is None or other is None or center is None or other_center is None:
        return None
    ours, theirs = spread * spread / len(baseline), other * other / len(candidate)
    size = max(map(abs, (*baseline, *candidate)))
    error = beyond_rounding(math.sqrt(ours + theirs), size)
    delta = beyond_rounding(other_center - center, size)
    if not (math.isfinite(error) and math.isfinite(delta)):
        return None
    return Welch(delta, error, _degrees(ours, theirs, len(baseline), len(candidate)))


def _degrees(ours: float, theirs: float, count: int, other_count: int) -> float:
    """Return the degrees of freedom; shares of the variance stand in for it, whose square may be too small or large."""
    variance = ours + theirs
    if variance == 0:
        return float(count + other_count - 2)
    share, other = ours / variance, theirs / variance
    return max(1.0, 1 / (share * share / (count - 1) + other * other / (other_count - 1)))
