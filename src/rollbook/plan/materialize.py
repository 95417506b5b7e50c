"""A flat row → the episode task that it stands for.

Rules:
* Routing and identity of this run stay out of the task.

Source: collection.md §2.11; servers.md §8.2.
"""

from collections.abc import Mapping
from typing import Final

from rollbook.errors import InputError
from rollbook.records.identity import TASK_INDEX_KEY_NAME, is_index
from rollbook.records.json_values import JsonMapping, JsonObject
from rollbook.records.keys import AGENT_REF_KEY, SKILLS_REF_KEY, TASK_SOURCE_KEY

_LEFT_OUT: Final = frozenset({AGENT_REF_KEY, TASK_SOURCE_KEY, SKILLS_REF_KEY})
_ID_KEYS: Final = ("task_id", "problem_id", "instance_id")


def materialize_task(row: JsonMapping, *, taskset: str, task_index: int | None = None) -> JsonObject:
    """Return `row` as `{"task_id": {"taskset", "task_id"}, "task_input": {...}}`.

    The id is the row's first of `task_id`, `problem_id`, `instance_id`, else its task index, else `task_index`.

    Raises:
        InputError: the row is an episode task already, or nothing names it.

    """
    if "task_input" in row or isinstance(row.get("task_id"), Mapping):
        raise InputError("the row is an episode task already: it has a `task_input`, or an object for its `task_id`")
    named = next((row[key] for key in _ID_KEYS if row.get(key) is not None), None)
    if named is None:
        own = row.get(TASK_INDEX_KEY_NAME)
        index = task_index if own is None else own
        if not is_index(index):
            raise InputError(f"nothing names the task: give it a task_id, or a task index from 0 (found {index!r})")
        named = index
    kept = {key: value for key, value in row.items() if key not in _LEFT_OUT and not key.startswith("_ng_")}
    return {"task_id": {"taskset": taskset, "task_id": str(named)}, "task_input": kept}
