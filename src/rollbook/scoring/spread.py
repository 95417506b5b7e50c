"""Statistics of a list of numbers, defined or None.

Rules:
* Sums are exactly rounded, so the order of the numbers changes no digit.
* A result that is not finite is undefined: None, never infinity.

Source: collection.md §6.4.
"""

import math
from collections.abc import Callable, Sequence

from rollbook.scoring.rows import Number


def finite_or_none(compute: Callable[[], float]) -> float | None:
    """Return what `compute` returns, or None where that is too large for a float."""
    try:
        value = compute()
    except OverflowError:
        return None
    return value if math.isfinite(value) else None


def mean(values: Sequence[Number]) -> float | None:
    """Return the arithmetic mean; None of nothing."""
    return finite_or_none(lambda: math.fsum(values) / len(values)) if values else None


def sample_std(values: Sequence[Number]) -> float | None:
    """Return the sample standard deviation (divisor n - 1); None of fewer than two numbers."""
    return _root_mean_square(values, len(values) - 1)


def population_std(values: Sequence[Number]) -> float | None:
    """Return the population standard deviation (divisor n); None of nothing."""
    return _root_mean_square(values, len(values))


def quantile(ordered: Sequence[Number], share: float) -> float | None:
    """Return the quantile of sorted numbers, between two of them by linear interpolation; None of nothing."""
    if not ordered:
        return None
    position = share * (len(ordered) - 1)
    below = math.floor(position)
    above = min(below + 1, len(ordered) - 1)
    low, high, part = ordered[below], ordered[above], position - below
    return finite_or_none(lambda: low * (1 - part) + high * part)


def median(ordered: Sequence[Number]) -> float | None:
    """Return the median of sorted numbers; None of nothing."""
    return quantile(ordered, 0.5)


def _root_mean_square(values: Sequence[Number], divisor: int) -> float | None:
    center = mean(values)
    if center is None or divisor < 1:
        return None
    return finite_or_none(
        lambda: math.sqrt(math.fsum((value - center) * (value - center) for value in values) / divisor)
    )
