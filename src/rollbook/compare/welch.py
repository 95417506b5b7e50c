"""The interval of a difference of two means whose spreads may differ: Welch's.

Rules:
* Two values a side are the least; two sides without any spread have an interval of no width.

Source: Welch 1947, "The generalization of Student's problem when several different population variances are involved".
"""

import math
from collections.abc import Sequence
from typing import Final

from rollbook.scoring.spread import mean, sample_std
from rollbook.scoring.student_t import t_quantile

_UPPER: Final = 0.975


def welch_interval(baseline: Sequence[float], candidate: Sequence[float]) -> tuple[float, float] | None:
    """Return the two-sided 95 in 100 interval of the candidate's mean less the baseline's; None of too few values."""
    spread, other = sample_std(baseline), sample_std(candidate)
    center, other_center = mean(baseline), mean(candidate)
    if spread is None or other is None or center is None or other_center is None:
        return None
    delta = other_center - center
    ours, theirs = spread * spread / len(baseline), other * other / len(candidate)
    variance = ours + theirs
    if variance == 0:
        return delta, delta
    weights = ours * ours / (len(baseline) - 1) + theirs * theirs / (len(candidate) - 1)
    degrees = max(1.0, variance * variance / weights) if weights else float(len(baseline) + len(candidate) - 2)
    reach = t_quantile(_UPPER, degrees) * math.sqrt(variance)
    return delta - reach, delta + reach
