"""Statistics of numbers that lie in one or several columns, as `spread` computes them, for a million of them.

Rules:
* Every figure is the one that `spread` gives of the same numbers, digit for digit.
* Where few different numbers occur, they are counted once and computed with once.
"""

import math
from array import array
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
_WORTH: Final = 16
_HALF: Final = 26
"""Bits of half a float's digits."""
_EXACT: Final = 1 << _HALF
_LARGE: Final = 1e290


class Distribution:
    """How numbers are distributed; there is at least one of them.

    `parts` are the numbers, `values` the different ones in order, and `times` says how often each of these is there;
    where that was not counted it is None, and `values` are all numbers in order. `counts` spares the counting.
    """

    __slots__ = ("_center", "_upto", "count", "parts", "times", "values")

    def __init__(self, *parts: Collection[Number], counts: Counter[Number] | None = None) -> None:
        self.parts = parts
        self.count = sum(map(len, parts))
        if counts is None and self.count > _LOOKED_AT:
            counts = _counts(parts)
        self.values: Sequence[Number] = sorted(chain(*parts) if counts is None else counts)
        self.times = None if counts is None else array("Q", map(counts.__getitem__, self.values))
        self._upto = None if self.times is None else array("Q", accumulate(self.times))
        self._center: float | None = None

    @property
    def lowest(self) -> Number:
        """The smallest number."""
        return self.values[0]

    @property
    def highest(self) -> Number:
        """The largest number."""
        return self.values[-1]

    def mean(self) -> float | None:
        """Return the arithmetic mean."""
        if self._center is None:
            self._center = finite_or_none(lambda: self._sum() / self.count)
        return self._center

    def _sum(self) -> float:
        if self.times is not None and self._are_few(max(abs(self.lowest), abs(self.highest))):
            return math.fsum(_multiples(self.values, self.times))
        return math.fsum(chain(*self.parts))

    def _are_few(self, largest: float) -> bool:
        """Whether it pays to add up multiples of the numbers there are, of which none is above `largest`."""
        return len(self.values) * _WORTH < self.count < _EXACT and largest < _LARGE

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
            return self.values[position]
        return self.values[bisect_right(self._upto, position)]

    def _deviation(self, divisor: int) -> float | None:
        center = self.mean()
        if center is None or divisor < 1:
            return None
        return finite_or_none(lambda: math.sqrt(math.fsum(self._squares(center)) / divisor))

    def _squares(self, center: float) -> Iterable[float]:
        squares = [(value - center) * (value - center) for value in self.values]
        if self.times is None:
            return squares
        if self._are_few(max(squares)):
            return _multiples(squares, self.times)
        return chain.from_iterable(map(repeat, squares, self.times))


def together(several: Sequence[Distribution]) -> Distribution:
    """Return how the numbers of `several` are distributed."""
    counts: Counter[Number] = Counter()
    for one in several:
        if one.times is None or len(counts) > _MOST:
            counts.clear()
            break
        for value, times in zip(one.values, one.times, strict=True):
            counts[value] += times
    return Distribution(*chain.from_iterable(one.parts for one in several), counts=counts or None)


def _multiples(values: Iterable[Number], times: Iterable[int]) -> Iterator[float]:
    """Yield numbers that add up to as many times each value, none of them rounded: a value's upper and lower half."""
    for value, often in zip(map(float, values), times, strict=True):
        mantissa, exponent = math.frexp(value)
        upper = math.ldexp(float(int(mantissa * _EXACT)), exponent - _HALF)
        yield upper * often
        yield (value - upper) * often


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
