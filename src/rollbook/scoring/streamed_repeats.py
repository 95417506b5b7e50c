"""The numbers of very many rows, by repeat, as columns.

Rules:
* A number costs eight bytes; what a row is besides its numbers is not kept.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Final

from rollbook.records.json_values import JsonObject
from rollbook.scoring.columns import described_columns
from rollbook.scoring.distribution import Distribution, together
from rollbook.scoring.number_column import NumberColumn
from rollbook.scoring.repeats import RepeatColumns
from rollbook.scoring.streamed_part import PartColumn
from rollbook.scoring.streamed_shape import HEAD, Names

_MOST_CELLS: Final = 1 << 17


class Repeats:
    """Every repeat's numbers; rows wait, by repeat, until there are enough of them to be put into columns.

    `rows`: how many rows each repeat has, of those that were settled.
    """

    def __init__(self) -> None:
        self._columns: dict[int, dict[str, NumberColumn]] = {}
        self.rows: dict[int, int] = {}
        self._waiting: list[Sequence[tuple[Any, ...]]] = []
        self._cells = 0

    def add(self, columns: Sequence[tuple[Any, ...]], names: Names) -> None:
        """Take rows in as columns, whose numbers are those of `names`; `settle` comes before other names."""
        self._waiting.append(columns)
        self._cells += len(columns) * len(columns[0])
        if self._cells > _MOST_CELLS:
            self.settle(names)

    def settle(self, names: Names) -> None:
        """Put the rows that wait, whose numbers are those of `names`, into columns."""
        if not self._waiting:
            return
        rollouts = list(chain.from_iterable(columns[1] for columns in self._waiting))
        numbers = [
            list(chain.from_iterable(parts)) for parts in zip(*(one[HEAD:] for one in self._waiting), strict=True)
        ]
        self._waiting.clear()
        self._cells = 0
        for rollout, here in _places(rollouts):
            found = [_taken(values, here) for values in numbers]
            self.rows[rollout] = self.rows.get(rollout, 0) + len(_taken(rollouts, here))
            columns = self._columns.setdefault(rollout, {})
            for name, values in zip(names, found, strict=True):
                there = [value for value in values if value is not None] if None in values else values
                if there:
                    _column(columns, name).extend(there)

    def parts(self) -> Iterator[PartColumn]:
        """Yield the columns, once the rows are settled, for `take`; the rows are told by `rows`."""
        for repeat, columns in self._columns.items():
            for name, column in columns.items():
                yield PartColumn.of(repeat, name, column)

    def take_rows(self, rows: Mapping[int, int]) -> None:
        """Take in how many rows each repeat of a part has."""
        for repeat, count in rows.items():
            self.rows[repeat] = self.rows.get(repeat, 0) + count
            self._columns.setdefault(repeat, {})

    def take(self, part: PartColumn) -> None:
        """Take in a column of a part."""
        if part.repeat is not None:
            _column(self._columns[part.repeat], part.name).extend(part.numbers())

    def indices(self) -> set[int]:
        """Return the rollout indices of the rows that were settled."""
        return set(self.rows)

    def columns(self) -> list[RepeatColumns]:
        """Return how every repeat's numbers are distributed, smallest index first, once the rows are settled."""
        return [
            RepeatColumns(
                index, self.rows[index], {name: Distribution(one.values) for name, one in self._columns[index].items()}
            )
            for index in sorted(self._columns)
        ]


def _places(rollouts: list[int]) -> Iterable[tuple[int, slice | list[int]]]:
    """Return each rollout index with where it is in `rollouts`; tasks mostly have the same ones, in order."""
    repeats = len(rollouts) if rollouts[0] not in rollouts[1:] else rollouts.index(rollouts[0], 1)
    first = rollouts[:repeats]
    if rollouts == first * (len(rollouts) // repeats):
        return [(rollout, slice(at, None, repeats)) for at, rollout in enumerate(first)]
    places: dict[int, list[int]] = {}
    for at, rollout in enumerate(rollouts):
        try:
            places[rollout].append(at)
        except KeyError:
            places[rollout] = [at]
    return places.items()


def _taken(values: list[Any], here: slice | list[int]) -> list[Any]:
    return values[here] if isinstance(here, slice) else [values[at] for at in here]


def described(repeats: Iterable[RepeatColumns]) -> JsonObject:
    """Return the five statistics of every field over all rows of `repeats`."""
    parts: dict[str, list[Distribution]] = {}
    rows = 0
    for repeat in repeats:
        rows += repeat.rows
        for name, column in repeat.columns.items():
            parts.setdefault(name, []).append(column)
    return described_columns({name: together(columns) for name, columns in parts.items()}, rows)


def _column(columns: dict[str, NumberColumn], name: str) -> NumberColumn:
    column = columns.get(name)
    if column is None:
        column = columns[name] = NumberColumn()
    return column
