"""The entry of one task, from the numbers of its rows: `task_entries`, as bytes.

Rules:
* Equal numbers are described once for very many tasks.

Source: collection.md §6.4 (4).
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, repeat
from typing import Any, Final

import msgspec

from rollbook.records.identity import ROLLOUT_INDEX_KEY_NAME, TASK_INDEX_KEY_NAME
from rollbook.scoring.columns import described_columns
from rollbook.scoring.distribution import Distribution
from rollbook.scoring.streamed_shape import HEAD, Names
from rollbook.scoring.struct_types import maker

_KEPT: Final = 1 << 11
_WHOLE: Final = 100.0
_RARE: Final = 4
_STATISTICS: Final = ("mean", "max", "min", "median", "std")
_ROLLOUT_ID: Final = "rollout_id"
_REST: Final = (
    *("sample", "num_rollouts", "expected_num_rollouts", "missing_num_rollouts", "reward_profile_completion_pct"),
    *("rollout_infos", TASK_INDEX_KEY_NAME),
)
_Column = tuple[Any, ...]
_Five = tuple[int | float | None, ...]
_NOWHERE: Final[_Five] = (None,) * len(_STATISTICS)


class TaskEntries:
    """Makes the entries of tasks whose rows have the same `names`."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self._made_info = maker((_ROLLOUT_ID, TASK_INDEX_KEY_NAME, ROLLOUT_INDEX_KEY_NAME, *names))
        self._made = maker((*(f"{statistic}/{name}" for name in names for statistic in _STATISTICS), *_REST))
        self._encode = msgspec.json.Encoder().encode
        self._known: dict[_Column, _Five] = {}

    def entries(
        self,
        columns: Sequence[_Column],
        starts: Sequence[int],
        samples: Iterable[msgspec.Raw],
        planned: Iterable[int | None],
    ) -> Iterator[bytes]:
        """Yield the entry of each task.

        `columns` are the measured rows, field by field, and `starts` says where those of each task begin; `samples` are
        what is shown of each task, and `planned` is how many rollouts each was to have; None: those at hand.
        """
        tasks, numbers = columns[0], columns[HEAD:]
        infos = self._infos(columns)
        bounds = list(zip(starts, [*starts[1:], len(tasks)], strict=True))
        statistics = self._of_equal_tasks(numbers, starts, len(tasks)) or (
            self._statistics([column[start:stop] for column in numbers], stop - start) for start, stop in bounds
        )
        for (start, stop), described, sample, expected in zip(bounds, statistics, samples, planned, strict=True):
            found = stop - start
            wanted = expected or found
            told = (sample, found, wanted, wanted - found, _WHOLE * found / wanted, infos[start:stop], tasks[start])
            yield self._encode(self._made(*described, *told))

    def _infos(self, columns: Sequence[_Column]) -> list[object]:
        """Return what entries tell of each row."""
        tasks, rollouts = columns[0], columns[1]
        ids = [f"{task}:{rollout}" for task, rollout in zip(tasks, rollouts, strict=True)]
        return list(map(self._made_info, ids, tasks, rollouts, *columns[HEAD:]))

    def _of_equal_tasks(
        self, numbers: Sequence[_Column], starts: Sequence[int], rows: int
    ) -> Iterable[Iterable[Any]] | None:
        """Return the statistics of each task where all have as many rows and no gaps, in few steps; None elsewhere."""
        each = rows // len(starts)
        if not numbers or starts != list(range(0, rows, each)):
            return None
        found: list[Iterable[_Five]] = []
        for column in numbers:
            fives = None if None in column else self._fives(column, each)
            if fives is None:
                return None
            found.append(fives)
        return map(chain.from_iterable, zip(*found, strict=True))

    def _fives(self, column: _Column, each: int) -> Iterable[_Five] | None:
        """Return the five statistics of every `each` numbers of a column; None where it takes a closer look."""
        parts = list(zip(*[iter(column)] * each, strict=True))
        if len(set(parts)) * _RARE > len(parts):
            return _described_parts(column, parts, each)
        get = self._known.get
        found = [get(part) or self._five(part) for part in parts]
        return found if all(found) else None

    def _statistics(self, columns: Sequence[_Column], rows: int) -> Iterable[Any]:
        get = self._known.get
        found = [get(column) or self._five(column) for column in columns]
        return chain.from_iterable(found) if all(found) else _closely(self._names, columns, rows)

    def _five(self, column: _Column) -> _Five:
        """Return the five statistics of a field, which some rows may lack; nothing where it takes a closer look."""
        if len(self._known) >= _KEPT:
            self._known.clear()
        five = self._known[column] = _described(column)
        return five


def _described_parts(column: _Column, parts: Sequence[_Column], each: int) -> Iterable[_Five] | None:
    """Return the five statistics of each of the `parts` of a column, of `each` numbers; None where one is odd."""
    if each == 1:
        values = list(map(float, column))
        return zip(values, column, column, values, repeat(0.0), strict=False)
    try:
        means = [total / each for total in map(math.fsum, parts)]
        centers = chain.from_iterable(map(repeat, means, repeat(each)))
        apart = [value - center for value, center in zip(column, centers, strict=True)]
        squares = map(math.fsum, zip(*[iter([one * one for one in apart])] * each, strict=True))
        spreads = [math.sqrt(total / (each - 1)) for total in squares]
    except OverflowError:
        return None
    if not all(map(math.isfinite, spreads)):
        return None
    ordered, half = list(map(sorted, parts)), each // 2
    if each % 2:
        medians = [float(one[half]) for one in ordered]
    else:
        medians = [one[half - 1] * 0.5 + one[half] * 0.5 for one in ordered]
    highest, lowest = [one[-1] for one in ordered], [one[0] for one in ordered]
    return zip(means, highest, lowest, medians, spreads, strict=True)


def _described(column: _Column) -> _Five:
    values = [value for value in column if value is not None] if None in column else column
    count = len(values)
    if not count:
        return _NOWHERE
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


def _closely(names: Names, columns: Iterable[_Column], rows: int) -> list[Any]:
    there = {
        name: [value for value in column if value is not None] for name, column in zip(names, columns, strict=True)
    }
    described = described_columns({name: Distribution(values) for name, values in there.items() if values}, rows)
    return [described.get(f"{statistic}/{name}") for name in names for statistic in _STATISTICS]
