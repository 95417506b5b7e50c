"""Very many numbers in few bytes: whole numbers stay whole, and none loses a digit.

Rules:
* Eight bytes a number while all are whole or all fit a float; what fits neither is kept as it is.
"""

from array import array
from collections.abc import Collection, Iterable, Iterator
from typing import Any, Final, TypeAlias

from rollbook.scoring.rows import Number

EXACT: Final = 2**53
"""Whole numbers up to here are floats without loss."""

Values: TypeAlias = "array[int] | array[float] | list[Number]"


class NumberColumn:
    """Numbers in the order in which they came."""

    __slots__ = ("values",)

    def __init__(self, values: Iterable[Number] = ()) -> None:
        self.values: Values = array("q")
        self.extend(list(values))

    def extend(self, values: "Values | tuple[Number, ...]") -> None:
        """Take `values` in."""
        kind = self.values
        if isinstance(kind, list):
            kind.extend(values)
            return
        if kind.typecode == "d" and not _fit_floats(values):
            self._widen(values)
            return
        try:
            taken: array[Any] = array(kind.typecode, values)
            kind.extend(taken)
        except (TypeError, OverflowError):
            self._widen(values)

    def _widen(self, values: "Values | tuple[Number, ...]") -> None:
        """Change to what holds both what is there and `values`."""
        there = self.values
        if _fit_floats(there) and _fit_floats(values):
            self.values = array("d", there)
            self.values.extend(array("d", values))
        else:
            self.values = [*there, *values]

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self.values)

    def __iter__(self) -> Iterator[Number]:
        """Yield them."""
        return iter(self.values)


def _fit_floats(values: Collection[Number]) -> bool:
    if not values or (max(values) <= EXACT and min(values) >= -EXACT):
        return True
    return all(isinstance(value, float) or -EXACT <= value <= EXACT for value in values)
