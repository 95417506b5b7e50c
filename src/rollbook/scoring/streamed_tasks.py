"""The entry of one task, from the numbers of its rows: `task_entries`, as bytes.

Rules:
* Equal numbers are described once for very many tasks.

Source: collection.md §6.4 (4).
"""

import math
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any, Final

import msgspec

from rollbook.records.identity import ROLLOUT_INDEX_KEY_NAME, TASK_INDEX_KEY_NAME
from rollbook.scoring.columns import described_columns
from rollbook.scoring.distribution import Distribution
from rollbook.scoring.streamed_shape import HEAD, Names
from rollbook.scoring.struct_types import maker

_KEPT: Final = 1 << 14
_WHOLE: Final = 100.0
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

    def infos(self, columns: Sequence[_Column]) -> list[object]:
        """Return what entries tell of each row of `columns`."""
        tasks, rollouts = columns[0], columns[1]
        ids = [f"{task}:{rollout}" for task, rollout in zip(tasks, rollouts, strict=True)]
        return list(map(self._made_info, ids, tasks, rollouts, *columns[HEAD:]))

    def entry(
        self,
        task: int,
        columns: Sequence[_Column],
        infos: Sequence[object],
        sample: msgspec.Raw,
        expected: int | None,
    ) -> bytes:
        """Return the entry of one task.

        `columns` are the numbers of its measured rows by name, `infos` what is told of each of them, `sample` is what
        is shown of the first one, and `expected` says how many rollouts were planned; None: those at hand.
        """
        found = len(infos)
        expected = expected or found
        rest = (sample, found, expected, expected - found, _WHOLE * found / expected, infos, task)
        return self._encode(self._made(*self._statistics(columns, found), *rest))

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
