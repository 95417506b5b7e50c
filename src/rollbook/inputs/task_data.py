"""What a server says about the fields of its tasks, and whether rows keep to it.

Rules:
* A server may export `TaskData` from `task_data.py` in its folder: a pydantic model of the flat fields, or a union.
* A row may carry its fields flat, in `verifier_metadata` or in `task_data`; they are one set of fields, and the same
  name with two values is a conflict.
* A field whose `legacy_location` is `verifier_metadata` is read there alone: beside it, it is misplaced.
* Fields that nobody declared are counted and are no fault.

Source: servers.md §8.2.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any, Final

import orjson
from pydantic import TypeAdapter, ValidationError

from rollbook.errors import TaskDataSchemaError
from rollbook.inputs.beside import TheirCode, imported
from rollbook.records.json_values import JsonObject

TASK_DATA_FILE: Final = "task_data.py"
_SCHEMA: Final = "TaskData"
_CONTAINERS: Final = ("verifier_metadata", "task_data")
_NO_FIELDS: Final = frozenset(
    {"responses_create_params", "agent_ref", "task_source", "_ng_task_index", "_ng_rollout_index", *_CONTAINERS}
)
_MOST_TOLD: Final = 20


def load_task_data_schema(server_dir: str | PathLike[str]) -> TypeAdapter[Any] | None:
    """Return the schema that a server's folder declares; None when it has no `task_data.py`.

    Raises:
        TaskDataSchemaError: the module cannot be imported, or its `TaskData` is no schema; names the file.

    """
    path = Path(server_dir) / TASK_DATA_FILE
    if not path.is_file():
        return None
    adapter = None
    with TheirCode(path):
        declared = getattr(imported(path, "task_data"), _SCHEMA, None)
        if declared is not None:
            adapter = TypeAdapter[Any](declared)
            adapter.json_schema()
    if adapter is None:
        raise TaskDataSchemaError(f"{path} declares no `{_SCHEMA}`; name the model of its fields so")
    return adapter


def normalize_task_fields(row: Mapping[str, object]) -> tuple[JsonObject, list[str]]:
    """Return the fields of a row's task, flat, and the names that it gives two values; the last container wins."""
    fields: JsonObject = {key: value for key, value in row.items() if key not in _NO_FIELDS}
    conflicts: list[str] = []
    for container in _CONTAINERS:
        inner = row.get(container)
        if not isinstance(inner, Mapping):
            continue
        conflicts += [key for key, value in inner.items() if key in fields and fields[key] != value]
        fields.update(inner)
    return fields, list(dict.fromkeys(conflicts))


@dataclass(slots=True)
class TaskDataReport:
    """What was found in a file's rows. `errors` are the first ones; the counters are by name of the field."""

    server: str
    source: str
    rows: int = 0
    error_rows: int = 0
    unknown: Counter[str] = field(default_factory=Counter)
    conflicting: Counter[str] = field(default_factory=Counter)
    misplaced: Counter[str] = field(default_factory=Counter)
    errors: list[str] = field(default_factory=list)

    @property
    def clean(self) -> bool:
        """Whether every row is as the schema says."""
        return not (self.error_rows or self.conflicting or self.misplaced)

    def summary(self) -> str:
        """Return the findings as text, one a line."""
        lines = [f"{self.source} ({self.server}): {self.rows} rows, {self.error_rows} with errors"]
        for name in ("unknown", "conflicting", "misplaced"):
            counted: Counter[str] = getattr(self, name)
            if counted:
                lines.append(f"{name}: " + ", ".join(f"{key} ({count})" for key, count in sorted(counted.items())))
        return "\n".join([*lines, *self.errors])


class TaskDataValidator:
    """Holds rows to a server's schema; without one, only conflicts are found."""

    def __init__(self, server: str, schema: TypeAdapter[Any] | None, source: str) -> None:
        self.report = TaskDataReport(server, source)
        self._schema = schema
        self._declared = {} if schema is None else dict(_properties(schema.json_schema()))

    def validate_row(self, index: int, row: Mapping[str, object]) -> None:
        """Count what is wrong with a row; `index` is its place in the file, from 0."""
        report, materialized = self.report, row.get("task_input")
        row = materialized if isinstance(materialized, Mapping) else row
        fields, conflicts = normalize_task_fields(row)
        report.rows += 1
        report.conflicting.update(conflicts)
        if self._schema is None:
            return
        report.misplaced.update(name for name in self._legacy() if name in row)
        report.unknown.update(name for name in fields if name not in self._declared)
        wrong = _wrong_with(fields, self._schema)
        report.error_rows += bool(wrong)
        if wrong and len(report.errors) < _MOST_TOLD:
            report.errors.append(f"row {index}: {wrong}")

    def _legacy(self) -> Iterator[str]:
        return (name for name, said in self._declared.items() if said.get("legacy_location") == _CONTAINERS[0])


def _wrong_with(fields: JsonObject, schema: TypeAdapter[Any]) -> str:
    """Say what a schema has against the fields of a row; its validators are somebody's code and may raise anything."""
    try:
        with TheirCode(TASK_DATA_FILE, "a validator raised "):
            try:
                schema.validate_python(fields)
            except ValidationError as error:
                return _told(error)
    except TaskDataSchemaError as error:
        return str(error)
    return ""


def validate_jsonl_rows(path: str | PathLike[str], validator: TaskDataValidator) -> TaskDataReport:
    """Hold every row of a file to a schema, and return the validator's report.

    Raises:
        OSError: the file cannot be read.

    """
    with Path(path).open("rb") as lines:
        for index, line in enumerate(line for line in lines if line.strip()):
            _validate_line(validator, index, line)
    return validator.report


def _validate_line(validator: TaskDataValidator, index: int, line: bytes) -> None:
    try:
        row = orjson.loads(line)
    except orjson.JSONDecodeError:
        row = None
    if isinstance(row, dict):
        validator.validate_row(index, row)
        return
    validator.report.rows += 1
    validator.report.error_rows += 1
    validator.report.errors.append(f"row {index}: no JSON object")


def _properties(
    schema: Mapping[str, Any], definitions: Mapping[str, Any] | None = None
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield what a JSON schema says of the members of its objects, those of a union's parts among them."""
    known = definitions if definitions is not None else schema.get("$defs", {})
    reference = schema.get("$ref")
    if isinstance(reference, str):
        yield from _properties(known[reference.rpartition("/")[2]], known)
    for word in ("anyOf", "oneOf", "allOf"):
        for part in schema.get(word, ()):
            yield from _properties(part, known)
    yield from schema.get("properties", {}).items()


def _told(error: ValidationError) -> str:
    details = error.errors(include_url=False, include_input=False, include_context=False)
    return "; ".join(f"{'.'.join(map(str, detail['loc'])) or 'row'}: {detail['msg']}" for detail in details)
