"""What a part of many rows came to, in a form that another process can take over.

Rules:
* What is put together of parts is what one pass over all rows comes to, digit for digit; a part of which that is not
  certain is refused, and its rows are gone through again.
"""

from array import array
from collections.abc import Iterator
from typing import Any

import msgspec

from rollbook.scoring.number_column import NumberColumn


class ApartError(Exception):
    """A part that cannot be put together with others."""


class PartCounts(msgspec.Struct, frozen=True):
    """How many rows and tasks a part has, and which repeats.

    `counts` are rows that measure, masked rows, tasks with a row that measures, and tasks without one.
    """

    counts: tuple[int, int, int, int]
    masked_indices: list[int]
    rows: dict[int, int]
    perf_rows: int
    perf_found: int


class PartColumn(msgspec.Struct, frozen=True):
    """Numbers of one field of a repeat; of no repeat where they tell what rollouts cost."""

    repeat: int | None
    name: str
    kind: str
    values: bytes

    @classmethod
    def of(cls, repeat: int | None, name: str, column: NumberColumn) -> "PartColumn":
        """Return a column that can be taken over. Raises ApartError where its numbers have no common form."""
        values = column.values
        if isinstance(values, list):
            raise ApartError
        return cls(repeat, name, values.typecode, values.tobytes())

    def numbers(self) -> "array[Any]":
        """Return the numbers."""
        return array(self.kind, self.values)


Part = tuple[PartCounts, Iterator[PartColumn]]
