"""One entry of metrics for each task.

Rules:
* Entries are ordered by task; the rollouts inside by repeat.
* A server's own metrics for a task join the entry of that task, and no others.

Source: collection.md §6.4 (4, 8).
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from rollbook.records.identity import ROLLOUT_INDEX_KEY_NAME, TASK_INDEX_KEY_NAME
from rollbook.records.json_values import JsonObject
from rollbook.scoring.columns import described
from rollbook.scoring.finite import finite_fields
from rollbook.scoring.rows import PlacedRow, by_task

_WHOLE: Final = 100.0


def task_entries(rows: Sequence[PlacedRow], expected: Mapping[int, int] | None = None) -> list[JsonObject]:
    """Return one entry a task; `expected` gives the planned rollouts of tasks, those at hand where it says nothing."""
    planned = expected or {}
    return [_entry(task, group, planned.get(task, len(group))) for task, group in by_task(rows).items()]


def merge_task_metrics(entries: Iterable[JsonObject], metrics: Iterable[Mapping[str, object]]) -> None:
    """Add a server's own metrics to the entries of the tasks that they name."""
    by_index = {entry[TASK_INDEX_KEY_NAME]: entry for entry in entries}
    for own in metrics:
        entry = by_index.get(own.get(TASK_INDEX_KEY_NAME))
        if entry is not None:
            entry.update(own)


def _entry(task: int, rows: Sequence[PlacedRow], expected: int) -> JsonObject:
    return {
        **described(rows),
        "sample": _without_indices(rows[0].fields),
        "num_rollouts": len(rows),
        "expected_num_rollouts": expected,
        "missing_num_rollouts": expected - len(rows),
        "reward_profile_completion_pct": _WHOLE * len(rows) / expected,
        "rollout_infos": [_rollout_info(row) for row in rows],
        TASK_INDEX_KEY_NAME: task,
    }


def _rollout_info(row: PlacedRow) -> JsonObject:
    return {
        "rollout_id": f"{row.task}:{row.rollout}",
        TASK_INDEX_KEY_NAME: row.task,
        ROLLOUT_INDEX_KEY_NAME: row.rollout,
        **row.numbers,
    }


def _without_indices(fields: Mapping[str, object]) -> JsonObject:
    indices = (TASK_INDEX_KEY_NAME, ROLLOUT_INDEX_KEY_NAME)
    return finite_fields({name: value for name, value in fields.items() if name not in indices})
