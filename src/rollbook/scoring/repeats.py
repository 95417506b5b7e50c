"""One entry of metrics for each repeat: how every numeric field is distributed over the tasks.

Rules:
* There are repeats to speak of only when more than one rollout index exists.
* A mean over one task has no interval; one over equal values has an interval of no width, and the log says so.
* That repeats cover different tasks shows in the entries themselves: whoever has them may tell it.
* A server's own metric replaces the generic one only when every repeat has it, finite.

Source: collection.md §6.4 (6, 8).
"""

import logging
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from rollbook.records.identity import ROLLOUT_INDEX_KEY_NAME
from rollbook.records.json_values import JsonObject
from rollbook.scoring.columns import columns_of, defined
from rollbook.scoring.distribution import Distribution
from rollbook.scoring.rows import Number, PlacedRow, number_in
from rollbook.scoring.student_t import t_quantile

_log = logging.getLogger(__name__)
_SEM: Final = "sem/"
_SAMPLES: Final = "sample_count"
_MISSING: Final = "missing_count"
_SHOWN: Final = 20
_UPPER: Final = 0.975
"""The share below the upper end of a two-sided interval of 95 in 100."""


def interval(center: float, standard_error: float, count: int) -> tuple[float, float]:
    """Return the ends of the 95 in 100 t interval around a mean of `count` (two or more) values."""
    reach = t_quantile(_UPPER, count - 1) * standard_error
    return center - reach, center + reach


def rows_by_repeat(rows: Iterable[PlacedRow]) -> dict[int, list[PlacedRow]]:
    """Return the rows of each rollout index, smallest index first."""
    repeats: defaultdict[int, list[PlacedRow]] = defaultdict(list)
    for row in rows:
        repeats[row.rollout].append(row)
    return dict(sorted(repeats.items()))


class RepeatColumns(msgspec.Struct, frozen=True):
    """One repeat: its rollout index, how many rows it has, and how the values of each numeric field are distributed."""

    index: int
    rows: int
    columns: Mapping[str, Distribution]


def repeat_entries(repeats: Mapping[int, Sequence[PlacedRow]]) -> list[JsonObject]:
    """Return one entry for each repeat."""
    tasks = len({row.task for rows in repeats.values() for row in rows})
    return entries_of([_columns(index, rows) for index, rows in repeats.items()], tasks)


def _columns(index: int, rows: Sequence[PlacedRow]) -> RepeatColumns:
    columns = {name: Distribution(values) for name, values in columns_of(rows).items()}
    return RepeatColumns(index, len(rows), columns)


def entries_of(repeats: Sequence[RepeatColumns], tasks: int) -> list[JsonObject]:
    """Return one entry for each repeat of so many tasks."""
    entries = [_entry(repeat, tasks) for repeat in repeats]
    flat = {name.removeprefix(_SEM) for entry in entries for name in entry if name.startswith(_SEM) and not entry[name]}
    if flat:
        _log.info("the same in all tasks of some repeat, so their intervals have no width: %s", sorted(flat))
    return entries


def unequal(entries: Sequence[Mapping[str, object]]) -> str | None:
    """Return what is told of repeats that cover different tasks, None where the entries of all cover the same."""
    if not any(entry.get(_MISSING) for entry in entries):
        return None
    tasks = max(_count(entry, _SAMPLES) + _count(entry, _MISSING) for entry in entries)
    shown = [f"repeat {entry.get(ROLLOUT_INDEX_KEY_NAME)} {_count(entry, _SAMPLES)}" for entry in entries[:_SHOWN]]
    more = [f"and {len(entries) - _SHOWN} more"] if len(entries) > _SHOWN else []
    return f"repeats cover different tasks (of {tasks} tasks: {', '.join([*shown, *more])})"


def _count(entry: Mapping[str, object], name: str) -> int:
    found = entry.get(name)
    return found if isinstance(found, int) else 0


def kept_of_hook(answers: Sequence[Mapping[str, Any]]) -> list[JsonObject]:
    """Return of each repeat's own metrics those that every repeat has, finite."""
    names = [name for name in answers[0] if all(number_in(answer.get(name)) is not None for answer in answers)]
    return [{name: answer[name] for name in names} for answer in answers]


def _entry(repeat: RepeatColumns, tasks: int) -> JsonObject:
    entry: JsonObject = {
        ROLLOUT_INDEX_KEY_NAME: repeat.index,
        _SAMPLES: repeat.rows,
        _MISSING: tasks - repeat.rows,
    }
    for name, values in repeat.columns.items():
        statistics = _statistics(values)
        entry |= defined({f"{statistic}/{name}": value for statistic, value in statistics.items()})
    return entry


def _statistics(values: Distribution) -> dict[str, Number | None]:
    center, std = values.mean(), values.sample_std()
    sem = None if std is None else std / math.sqrt(values.count)
    low = high = None
    if center is not None and sem is not None:
        low, high = interval(center, sem, values.count)
    return {
        "mean": center,
        "median": values.median(),
        "std": std,
        "sem": sem,
        "min": values.lowest,
        "max": values.highest,
        "p25": values.quantile(0.25),
        "p75": values.quantile(0.75),
        "ci_low_95": low,
        "ci_high_95": high,
    }
