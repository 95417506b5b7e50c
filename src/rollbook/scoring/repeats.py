"""One entry of metrics for each repeat: how every numeric field is distributed over the tasks.

Rules:
* There are repeats to speak of only when more than one rollout index exists.
* A mean over one task has no interval; one over equal values has an interval of no width, and the log says so.
* A server's own metric replaces the generic one only when every repeat has it, finite.

Source: collection.md §6.4 (6, 8).
"""

import logging
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from rollbook.records.identity import ROLLOUT_INDEX_KEY_NAME
from rollbook.records.json_values import JsonObject
from rollbook.scoring.columns import columns_of, defined
from rollbook.scoring.rows import Number, PlacedRow, number_in
from rollbook.scoring.spread import mean, median, quantile, sample_std
from rollbook.scoring.student_t import t_quantile

_log = logging.getLogger(__name__)
_SEM: Final = "sem/"
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


def repeat_entries(repeats: Mapping[int, Sequence[PlacedRow]]) -> list[JsonObject]:
    """Return one entry for each repeat."""
    tasks = len({row.task for rows in repeats.values() for row in rows})
    if any(len(rows) != tasks for rows in repeats.values()):
        sizes = {index: len(rows) for index, rows in repeats.items()}
        _log.warning("repeats cover different tasks (rollouts by repeat: %s, of %d tasks)", sizes, tasks)
    entries = [_entry(index, rows, tasks) for index, rows in repeats.items()]
    flat = {name.removeprefix(_SEM) for entry in entries for name in entry if name.startswith(_SEM) and not entry[name]}
    if flat:
        _log.info("the same in all tasks of some repeat, so their intervals have no width: %s", sorted(flat))
    return entries


def kept_of_hook(answers: Sequence[Mapping[str, Any]]) -> list[JsonObject]:
    """Return of each repeat's own metrics those that every repeat has, finite."""
    names = [name for name in answers[0] if all(number_in(answer.get(name)) is not None for answer in answers)]
    return [{name: answer[name] for name in names} for answer in answers]


def _entry(index: int, rows: Sequence[PlacedRow], tasks: int) -> JsonObject:
    entry: JsonObject = {
        ROLLOUT_INDEX_KEY_NAME: index,
        "sample_count": len(rows),
        "missing_count": tasks - len(rows),
    }
    for name, values in columns_of(rows).items():
        entry |= defined({f"{statistic}/{name}": value for statistic, value in _statistics(values).items()})
    return entry


def _statistics(values: Sequence[Number]) -> dict[str, Number | None]:
    ordered = sorted(values)
    center, std = mean(ordered), sample_std(ordered)
    sem = None if std is None else std / math.sqrt(len(ordered))
    low = high = None
    if center is not None and sem is not None:
        low, high = interval(center, sem, len(ordered))
    return {
        "mean": center,
        "median": median(ordered),
        "std": std,
        "sem": sem,
        "min": ordered[0],
        "max": ordered[-1],
        "p25": quantile(ordered, 0.25),
        "p75": quantile(ordered, 0.75),
        "ci_low_95": low,
        "ci_high_95": high,
    }
