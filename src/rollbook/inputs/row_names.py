"""The names that a dataset's row brings along: of its task, its agent, its server, its rollout.

Rules:
* A name that is there is text; a value of another type never counts as naming nobody.
* `null`, and an empty `agent_ref`, name nobody.
* What collection alone writes has no place in a dataset.

Source: collection.md §1.3, §2.2, §2.9.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from rollbook.errors import InputError
from rollbook.records.identity import ROLLOUT_ID_KEY_NAME, TASK_INDEX_KEY_NAME, checked_rollout_id, is_index
from rollbook.records.json_values import JsonMapping
from rollbook.records.keys import (
    AGENT_REF_KEY,
    COLLECTOR_KEYS,
    NG_ENVIRONMENT_SERVER_KEY,
    NG_FAILURE_PREFIX,
    TASK_SOURCE_KEY,
)
from rollbook.records.source import is_materialized

_LONGEST: Final = 80


def faults_in_names(row: JsonMapping) -> Iterator[str]:
    """Yield what is wrong with the names in `row`, and what to do about it."""
    yield from _collectors_own(row)
    yield from faults_in_routing(row)
    yield from _rollout_id(row.get(ROLLOUT_ID_KEY_NAME))
    index = row.get(TASK_INDEX_KEY_NAME)
    if index is not None and not is_index(index):
        yield f"`{TASK_INDEX_KEY_NAME}` must be a whole number from 0, found {_shown(index)}"


def faults_in_routing(row: JsonMapping) -> Iterator[str]:
    """Yield what is wrong with the names by which `row` finds its agent and its server; a taskset is one."""
    yield from _agent(row.get(AGENT_REF_KEY))
    for key in (TASK_SOURCE_KEY, NG_ENVIRONMENT_SERVER_KEY):
        name = row.get(key)
        if name is not None and not isinstance(name, str):
            yield f"`{key}` must be text, found {_shown(name)}"
    yield from _episode_task(row)


def task_name(row: JsonMapping) -> tuple[object, str] | None:
    """Return the set that a row's task belongs to and its id there, or None for a row that names no task."""
    task_id = row.get("task_id")
    if isinstance(task_id, Mapping):
        taskset, own = task_id.get("taskset"), task_id.get("task_id")
        return (taskset, own) if isinstance(taskset, str) and isinstance(own, str) else None
    return (_set_of(row), str(task_id)) if isinstance(task_id, str | int) else None


def _set_of(row: JsonMapping) -> object:
    agent_ref = row.get(AGENT_REF_KEY)
    return row.get(TASK_SOURCE_KEY) or (agent_ref.get("name") if isinstance(agent_ref, Mapping) else None)


def _collectors_own(row: JsonMapping) -> Iterator[str]:
    found = [key for key in row if key in COLLECTOR_KEYS or key.startswith(NG_FAILURE_PREFIX)]
    if found:
        yield f"{', '.join(f'`{key}`' for key in found)}: collection alone writes this; remove it from the row"


def _agent(agent_ref: object) -> Iterator[str]:
    match agent_ref:
        case None | {"name": str(_)}:
            return
        case Mapping() if not agent_ref:
            return
        case _:
            yield f'`{AGENT_REF_KEY}` must be an object {{"name": "<agent>"}}, found {_shown(agent_ref)}'


def _episode_task(row: JsonMapping) -> Iterator[str]:
    task_id = row.get("task_id")
    if not is_materialized(row) or not isinstance(task_id, Mapping):
        return
    for key in ("taskset", "task_id"):
        if not isinstance(task_id.get(key), str) or not task_id[key]:
            yield f"`task_id.{key}` of an episode task must be text, found {_shown(task_id.get(key))}"


def _rollout_id(rollout_id: object) -> Iterator[str]:
    if rollout_id is None:
        return
    if not isinstance(rollout_id, str):
        yield f"`{ROLLOUT_ID_KEY_NAME}` must be text, found {_shown(rollout_id)}"
        return
    try:
        checked_rollout_id(rollout_id)
    except InputError as error:
        yield str(error)


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
