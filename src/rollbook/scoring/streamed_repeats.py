"""The numbers of very many rows, by repeat, as columns.

Rules:
* A number costs eight bytes; what a row is besides its numbers is not kept.
"""

from collections.abc import Iterable
from typing import Final

from rollbook.records.json_values import JsonObject
from rollbook.scoring.columns import described_columns
from rollbook.scoring.distribution import Distribution
from rollbook.scoring.number_column import NumberColumn
from rollbook.scoring.repeats import RepeatColumns
from rollbook.scoring.streamed_shape import HEAD, Flat, Names

_MOST_CELLS: Final = 1 << 17


class Repeats:
    """Every repeat's numbers; rows wait, by repeat, until there are enough of them to be put into columns."""

    def __init__(self) -> None:
        self._columns: dict[int, dict[str, NumberColumn]] = {}
        self._rows: dict[int, int] = {}
        self._waiting: dict[int, list[Flat]] = {}
        self._cells = 0

    def add(self, rows: Iterable[Flat], names: Names) -> None:
        """Take rows in, whose numbers are those of `names`; `settle` comes before rows with other ones."""
        waiting = self._waiting
        for row in rows:
            try:
                waiting[row[1]].append(row)
            except KeyError:
                waiting[row[1]] = [row]
            self._cells += len(row)
        if self._cells > _MOST_CELLS:
            self.settle(names)

    def settle(self, names: Names) -> None:
        """Put the rows that wait, whose numbers are those of `names`, into columns."""
        for rollout, rows in self._waiting.items():
            self._rows[rollout] = self._rows.get(rollout, 0) + len(rows)
            columns = self._columns.setdefault(rollout, {})
            for name, values in zip(names, list(zip(*rows, strict=True))[HEAD:], strict=True):
                found = [value for value in values if value is not None] if None in values else values
                if found:
                    _column(columns, name).extend(found)
        self._waiting.clear()
        self._cells = 0

    def indices(self) -> set[int]:
        """Return the rollout indices of the rows that were settled."""
        return set(self._rows)

    def columns(self) -> list[RepeatColumns]:
        """Return every repeat's columns, smallest index first, once the rows are settled."""
        found = sorted(self._columns.items())
        return [
            RepeatColumns(index, self._rows[index], {name: one.values for name, one in columns.items()})
            for index, columns in found
        ]

    def described(self) -> JsonObject:
        """Return the five statistics of every field over all rows that were settled."""
        parts: dict[str, list[NumberColumn]] = {}
        for _, columns in sorted(self._columns.items()):
            for name, column in columns.items():
                parts.setdefault(name, []).append(column)
        columns_of_all = {name: Distribution(*(one.values for one in columns)) for name, columns in parts.items()}
        return described_columns(columns_of_all, sum(self._rows.values()))


def _column(columns: dict[str, NumberColumn], name: str) -> NumberColumn:
    column = columns.get(name)
    if column is None:
        column = columns[name] = NumberColumn()
    return column
