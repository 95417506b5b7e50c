"""The rollouts of a run by task and repeat, in whatever order they were named.

Rules:
* Named in order, as plans mostly have them, they cost nothing; else a number of eight bytes each.
* Every pass gives the same rollouts.
"""

from array import array
from collections.abc import Iterator
from heapq import merge
from itertools import islice
from typing import Final

from rollbook.records.seats import Seats

_AT_ONCE: Final = 1 << 15
"""So many numbers are sorted as objects; what is sorted lies in parts of this size, which are merged when read."""


class InOrder:
    """(packed key, seat) of every rollout, keys rising; for as long as no rollout is named anew."""

    __slots__ = ("_seats", "_sorted")

    def __init__(self, seats: Seats) -> None:
        self._seats = seats
        self._sorted = None if seats.all_rise else _sorted_in_parts(seats)

    def __iter__(self) -> Iterator[tuple[int, int]]:
        """Yield them."""
        if self._sorted is None:
            return self._seats.items()
        whole = memoryview(self._sorted) if isinstance(self._sorted, array) else self._sorted
        parts = (whole[start : start + _AT_ONCE] for start in range(0, len(whole), _AT_ONCE))
        return ((number, self._seats[number]) for number in merge(*parts))


def _sorted_in_parts(numbers: Seats) -> "array[int] | list[int]":
    """Return the numbers, each part in order; as one part where there are some that an array does not hold."""
    if not isinstance(numbers.keys, array):
        return sorted(numbers)
    found = array("Q")
    left = iter(numbers)
    while part := sorted(islice(left, _AT_ONCE)):
        found.extend(part)
    return found
