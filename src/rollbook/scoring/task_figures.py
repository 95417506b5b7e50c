"""Mean, largest, smallest, median and spread of few numbers, of one task or of very many tasks of as many rows.

Rules:
* Every figure is the one that `spread` gives of the same numbers, digit for digit.
* Where one is not defined by a plain computation, none is told: the caller takes a closer look.
"""

import math
from collections.abc import Iterable, Sequence
from itertools import repeat
from operator import itemgetter, mul, sub, truediv
from typing import Any, Final

Column = tuple[Any, ...]
"""Numbers of one field, row by row; None where a row lacks it."""
Five = tuple[int | float | None, ...]
_NOTHING: Final[Five] = (None,) * 5


def described_alone(column: Column) -> Five:
    """Return the five figures of one task's numbers, None for what is not defined; nothing where one is too large."""
    values = [value for value in column if value is not None] if None in column else column
    count = len(values)
    if not count:
        return _NOTHING
    if count == 1:
        value = values[0]
        return float(value), value, value, float(value), 0.0 if len(column) == 1 else None
    ordered = sorted(values)
    try:
        mean = math.fsum(values) / count
        low, high = ordered[(count - 1) // 2], ordered[count // 2]
        median = float(low) if count % 2 else low * 0.5 + high * 0.5
        spread = math.sqrt(math.fsum([(value - mean) * (value - mean) for value in values]) / (count - 1))
    except OverflowError:
        return ()
    if not math.isfinite(mean + median + spread):
        return ()
    return mean, ordered[-1], ordered[0], median, spread


def described_parts(column: Column, each: int) -> tuple[Sequence[int | float], ...] | None:
    """Return the figures of every `each` numbers of a column without gaps, one after the other; None of large ones."""
    if each == 1:
        values = list(map(float, column))
        return values, column, column, values, [0.0] * len(column)
    parts = list(zip(*[iter(column)] * each, strict=True))
    try:
        means = list(map(truediv, map(math.fsum, parts), repeat(each)))
        apart = [list(map(sub, column[at::each], means)) for at in range(each)]
        squares = zip(*(map(mul, one, one) for one in apart), strict=True)
        spreads = [math.sqrt(total / (each - 1)) for total in map(math.fsum, squares)]
        ordered = list(map(sorted, parts))
        medians = _medians(ordered, each)
    except OverflowError:
        return None
    if not all(map(math.isfinite, spreads)):
        return None
    return means, [one[-1] for one in ordered], [one[0] for one in ordered], medians, spreads


def _medians(ordered: Iterable[Sequence[Any]], each: int) -> list[float]:
    half = each // 2
    if each % 2:
        return list(map(float, map(itemgetter(half), ordered)))
    return [one[half - 1] * 0.5 + one[half] * 0.5 for one in ordered]
