"""What a component computes of its own tasks for the metrics of a data set: `compute_task_metrics`.

Rules:
* The function stands in `dataset_metrics.py` of the component's folder. It is given a task's fields, flat, and returns
  numbers and texts by name.
* What it raises names the file and the row.

Source: servers.md §8.9.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from rollbook.errors import TaskDataSchemaError
from rollbook.inputs.beside import TheirCode, imported
from rollbook.inputs.task_data import normalize_task_fields
from rollbook.records.json_values import JsonMapping, JsonObject

HOOK_FILE: Final = "dataset_metrics.py"
_FUNCTION: Final = "compute_task_metrics"

TaskMetrics = Callable[[JsonMapping], JsonObject]
"""A row → what its component computes of its task."""


def load_task_metrics(folder: Path) -> TaskMetrics | None:
    """Return what the component in `folder` computes of a row's task; None when it computes nothing.

    Raises:
        TaskDataSchemaError: the module cannot be imported, or has no such function. What is returned raises it of a
            task on which the function does, or for which it returns something else than numbers and texts by name.

    """
    path = folder / HOOK_FILE
    if not path.is_file():
        return None
    with TheirCode(path):
        function = getattr(imported(path, "dataset_metrics"), _FUNCTION, None)
    if not callable(function):
        raise TaskDataSchemaError(f"{path} has no function `{_FUNCTION}(task_data)`")
    return lambda row: _computed(path, function, row)


def _computed(path: Path, function: Callable[[JsonObject], object], row: JsonMapping) -> JsonObject:
    task = row.get("task_input")
    fields, _ = normalize_task_fields(task if isinstance(task, Mapping) else row)
    with TheirCode(path, f"{_FUNCTION} raised "):
        computed = function(fields)
    if not isinstance(computed, Mapping) or not all(_is_told(*one) for one in computed.items()):
        raise TaskDataSchemaError(f"{path}: {_FUNCTION} is to return numbers and texts by name, not {computed!r:.200}")
    return dict(computed)


def _is_told(name: object, value: object) -> bool:
    return isinstance(name, str) and isinstance(value, int | float | str)
