"""Values that many share, kept once and numbered in the order in which they were first seen.

Rules:
* A number names one value for good; nothing is taken out again.
"""

from collections.abc import Hashable, Iterator
from typing import Generic, TypeVar

_T = TypeVar("_T", bound=Hashable)


class Shared(Generic[_T]):
    """Distinct values by number; those given at the start have the first numbers."""

    def __init__(self, *first: _T) -> None:
        self._values: list[_T] = list(first)
        self._numbers: dict[_T, int] = {value: number for number, value in enumerate(first)}

    def number(self, value: _T) -> int:
        """Return the number of `value`, a new one when it was not seen before."""
        found = self._numbers.get(value)
        if found is None:
            found = self._numbers[value] = len(self._values)
            self._values.append(value)
        return found

    def __getitem__(self, number: int) -> _T:
        """Return the value with that number."""
        return self._values[number]

    def __iter__(self) -> Iterator[_T]:
        """Yield the values by number."""
        return iter(self._values)
