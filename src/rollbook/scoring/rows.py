"""The rows of an aggregation request, placed: which rollout each is, what it measures, and what was masked.

Rules:
* Rows are sorted by (task, rollout); two rows of one rollout are refused, not averaged.
* A row is read once: its numbers are taken here, before a hook may change it.

Source: collection.md §6.4; cases RC-77, RC-84.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Any, Final

import msgspec

from rollbook.errors import InputError
from rollbook.records.identity import ROLLOUT_INDEX_KEY_NAME, TASK_INDEX_KEY_NAME, RolloutKey, is_index
from rollbook.records.json_values import JsonObject
from rollbook.records.keys import MASK_SAMPLE_KEY, RESPONSE_KEY

Number = int | float
_LARGEST: Final = 1.7e308


class PlacedRow(msgspec.Struct, frozen=True):
    """One row: its rollout, its fields without the masking flag, its numeric fields, and whether it was masked."""

    task: int
    rollout: int
    fields: dict[str, object]
    numbers: Mapping[str, Number]
    masked: bool


class Split(msgspec.Struct, frozen=True):
    """The rows in (task, rollout) order, those that measure apart from those that were masked."""

    measured: tuple[PlacedRow, ...]
    masked: tuple[PlacedRow, ...]

    @property
    def num_repeats(self) -> int:
        """How many different rollout indices there are, masked ones included."""
        return len({row.rollout for rows in (self.measured, self.masked) for row in rows})

    def coverage(self) -> JsonObject:
        """Return the `coverage/*` keys: none when nothing was masked."""
        if not self.masked:
            return {}
        measured = {row.task for row in self.measured}
        return {
            "coverage/measured_rollouts": len(self.measured),
            "coverage/masked_rollouts": len(self.masked),
            "coverage/measured_tasks": len(measured),
            "coverage/fully_masked_tasks": len({row.task for row in self.masked} - measured),
        }


def split_rows(rows: Sequence[Mapping[str, Any]]) -> Split:
    """Place, sort and split `rows`.

    Raises:
        InputError: a row names no rollout, or two rows name the same one.

    """
    seen: dict[RolloutKey, int] = {}
    for position, row in enumerate(rows):
        key = _key_of(row, position)
        if key in seen:
            raise InputError(
                f"rollout {key} is in the request twice (verify_responses[{seen[key]}] and [{position}]): one server's "
                "results hold each rollout once; aggregate overlapping shards separately, or renumber their tasks"
            )
        seen[key] = position
    placed = [_placed(key, rows[position]) for key, position in sorted(seen.items())]
    return Split(tuple(row for row in placed if not row.masked), tuple(row for row in placed if row.masked))


def by_task(rows: Iterable[PlacedRow]) -> dict[int, list[PlacedRow]]:
    """Return sorted rows, grouped by task."""
    return {task: list(group) for task, group in groupby(rows, key=attrgetter("task"))}


def tasks_of(rows: Iterable[PlacedRow]) -> list[list[dict[str, object]]]:
    """Return sorted rows as a hook is given them: one list of rows for each task."""
    return [[row.fields for row in group] for group in by_task(rows).values()]


def number_in(value: object) -> Number | None:
    """Return `value` as a number (a flag as 0 or 1), or None when it is none or not finite."""
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, int):
        return value if abs(value) < _LARGEST else None
    return value if isinstance(value, float) and math.isfinite(value) else None


def _key_of(row: Mapping[str, Any], position: int) -> RolloutKey:
    task, rollout = row.get(TASK_INDEX_KEY_NAME), row.get(ROLLOUT_INDEX_KEY_NAME)
    if isinstance(task, int) and is_index(task) and isinstance(rollout, int) and is_index(rollout):
        return RolloutKey(task, rollout)
    raise InputError(
        f"verify_responses[{position}] names no rollout ({TASK_INDEX_KEY_NAME}: {task!r}, {ROLLOUT_INDEX_KEY_NAME}: "
        f"{rollout!r}); both are non-negative integers, as a collected row has them"
    )


def _placed(key: RolloutKey, row: Mapping[str, Any]) -> PlacedRow:
    fields = {name: value for name, value in row.items() if name != MASK_SAMPLE_KEY}
    return PlacedRow(key.task, key.rollout, fields, _numbers_of(fields), bool(row.get(MASK_SAMPLE_KEY)))


def _numbers_of(fields: Mapping[str, object]) -> dict[str, Number]:
    response = fields.get(RESPONSE_KEY)
    usage = response.get("usage") if isinstance(response, Mapping) else None
    return _numeric(usage if isinstance(usage, Mapping) else {}) | _numeric(fields)


def _numeric(fields: Mapping[str, object]) -> dict[str, Number]:
    return {
        name: number
        for name, value in fields.items()
        if not name.startswith("_") and (number := number_in(value)) is not None
    }
