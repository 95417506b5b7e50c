"""What a dataset's rows must hold before they can be planned.

Rules:
* All rows are looked at; one error lists every row at fault, by line.
* An empty `input` list is legal: some agents build their own prompt.

Source: cases RC-66, RC-68; collection.md §2.1, §2.4, §2.9.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from rollbook.errors import InputError
from rollbook.records.identity import ROLLOUT_ID_KEY_NAME, TASK_INDEX_KEY_NAME, checked_rollout_id, is_index
from rollbook.records.json_values import JsonMapping
from rollbook.records.keys import AGENT_REF_KEY, RESPONSES_CREATE_PARAMS_KEY, TASK_SOURCE_KEY
from rollbook.records.source import SourceRow, is_materialized

_LISTED: Final = 20


@dataclass(slots=True)
class RowChecks:
    """Looks at rows as they stream by; `finish` raises for all that were at fault."""

    prompt_is_filled_in: bool = False
    _without_prompt: list[str] = field(default_factory=list)
    _indexed: int = 0
    _unindexed: str | None = None
    _content: dict[object, tuple[bytes, str]] = field(default_factory=dict)
    _clashes: list[str] = field(default_factory=list)

    def watch(self, rows: Iterable[SourceRow]) -> Iterator[SourceRow]:
        """Yield `rows`, looking at each."""
        for source in rows:
            self.look(source)
            yield source
        self.finish()

    def look(self, source: SourceRow) -> None:
        """Look at one row."""
        self._look_at_prompt(source)
        self._look_at_ids(source)

    def finish(self) -> None:
        """Raise for every row at fault."""
        if self._without_prompt:
            raise InputError(
                f"`{RESPONSES_CREATE_PARAMS_KEY}` is missing or no object in: {_listed(self._without_prompt)}. "
                "Give each row the block, or a prompt template with --prompt-config"
            )
        if self._clashes:
            raise InputError(
                f"different tasks share one id: {_listed(self._clashes)}. Give each task its own id; "
                "repeats of a task must be equal rows"
            )
        if self._indexed and self._unindexed:
            raise InputError(
                f"some rows carry `{TASK_INDEX_KEY_NAME}` and others do not (first without: {self._unindexed}). "
                "Number all rows or none"
            )

    def _look_at_prompt(self, source: SourceRow) -> None:
        if is_materialized(source.row) or self.prompt_is_filled_in:
            return
        if not isinstance(source.row.get(RESPONSES_CREATE_PARAMS_KEY), dict):
            self._without_prompt.append(source.place)

    def _look_at_ids(self, source: SourceRow) -> None:
        row = source.row
        if ROLLOUT_ID_KEY_NAME in row:
            try:
                checked_rollout_id(str(row[ROLLOUT_ID_KEY_NAME]))
            except InputError as error:
                raise InputError(f"{source.place}: {error}") from None
        index = row.get(TASK_INDEX_KEY_NAME)
        if index is None:
            self._unindexed = self._unindexed or source.place
        elif is_index(index):
            self._indexed += 1
            self._same_content((TASK_INDEX_KEY_NAME, index), source)
        else:
            raise InputError(f"{source.place}: `{TASK_INDEX_KEY_NAME}` must be a whole number from 0, found {index!r}")
        task_id = row.get("task_id")
        if isinstance(task_id, str | int):
            self._same_content((_set_of(row), str(task_id)), source)
        elif isinstance(task_id, Mapping):
            self._same_content((task_id.get("taskset"), task_id.get("task_id")), source)

    def _same_content(self, name: object, source: SourceRow) -> None:
        digest = source.digest
        content, place = self._content.setdefault(name, (digest, source.place))
        if content != digest:
            shown = name[1] if isinstance(name, tuple) else name
            self._clashes.append(f"{shown!r} at {place} and {source.place}")


def _set_of(row: JsonMapping) -> object:
    agent_ref = row.get(AGENT_REF_KEY)
    return row.get(TASK_SOURCE_KEY) or (agent_ref.get("name") if isinstance(agent_ref, Mapping) else None)


def _listed(places: list[str]) -> str:
    more = f" and {len(places) - _LISTED} more" if len(places) > _LISTED else ""
    return ", ".join(places[:_LISTED]) + more
