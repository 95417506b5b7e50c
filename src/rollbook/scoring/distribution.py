"""Statistics of numbers that lie in one or several columns, as `spread` computes them, for a million of them.

Rules:
* Every figure is the one that `spread` gives of the same numbers, digit for digit.
* Where few different numbers occur, they are counted once and computed with once.
"""

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import accumulate, chain, islice, repeat
from typing import Final

from rollbook.scoring.rows import Number
from rollbook.scoring.spread import finite_or_none

_LOOKED_AT: Final = 4096
_FEW: Final = 2048
_MOST: Final = 1 << 14
_AT_ONCE: Final = 1 << 16


class Distribution:
    """How numbers are distributed; there is at least one of them."""

    __slots__ = ("_parts", "_sorted", "_upto", "count")

    def __init__(self, *parts: Collection[Number]) -> None:
        self._parts = parts
        self.count = sum(map(len, parts))
        counts = _counts(parts) if self.count > _LOOKED_AT else None
        self._sorted: Sequence[Number] = sorted(chain(*parts) if counts is None else counts)
        self._upto = None if counts is None else list(accumulate(counts[value] for value in self._sorted))

    @property
    def lowest(self) -> Number:
        """The smallest number."""
        return self._sorted[0]

    @property
    def highest(self) -> Number:
        """The largest number."""
        return self._sorted[-1]

    def mean(self) -> float | None:
        """Return the arithmetic mean."""
        return finite_or_none(lambda: math.fsum(chain(*self._parts)) / self.count)

    def sample_std(self) -> float | None:
        """Return the sample standard deviation (divisor n - 1); None of one number."""
        return self._deviation(self.count - 1)

    def population_std(self) -> float | None:
        """Return the population standard deviation (divisor n)."""
        return self._deviation(self.count)

    def quantile(self, share: float) -> float | None:
        """Return the quantile, between two numbers by linear interpolation."""
        position = share * (self.count - 1)
        below = math.floor(position)
        low, high, part = self._at(below), self._at(min(below + 1, self.count - 1)), position - below
        return finite_or_none(lambda: low * (1 - part) + high * part)

    def median(self) -> float | None:
        """Return the median."""
        return self.quantile(0.5)

    def _at(self, position: int) -> Number:
        if self._upto is None:
            return self._sorted[position]
        return self._sorted[bisect_right(self._upto, position)]

    def _deviation(self, divisor: int) -> float | None:
        center = self.mean()
        if center is None or divisor < 1:
            return None
        return finite_or_none(lambda: math.sqrt(math.fsum(self._squares(center)) / divisor))

    def _squares(self, center: float) -> Iterable[float]:
        squares = [(value - center) * (value - center) for value in self._sorted]
        if self._upto is None:
            return squares
        times = (end - start for start, end in zip(chain((0,), self._upto), self._upto, strict=False))
        return chain.from_iterable(map(repeat, squares, times))


def _counts(parts: tuple[Collection[Number], ...]) -> Counter[Number] | None:
    """Return how often each number occurs; None where too many different ones do."""
    if len(set(islice(chain(*parts), _LOOKED_AT))) > _FEW:
        return None
    counts: Counter[Number] = Counter()
    for piece in chain.from_iterable(map(_pieces, parts)):
        counts.update(piece)
        if len(counts) > _MOST:
            return None
    return counts


def _pieces(values: Collection[Number]) -> Iterator[Iterable[Number]]:
    left = iter(values)
    for _ in range(0, len(values), _AT_ONCE):
        yield islice(left, _AT_ONCE)
