"""What a dataset's rows must hold before they can be planned.

Rules:
* All rows are looked at; one error lists every row at fault, by line.
* An empty `input` list is legal: some agents build their own prompt.
* One id is one task: rows that share it are alike. Rows that bring the number of their task along, as those of a plan
  do, may differ in routing, seeds and skills.

Source: cases RC-66, RC-68; collection.md §2.1, §2.4, §2.9.
"""

from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from rollbook.errors import InputError
from rollbook.inputs.row_names import faults_in_names, task_name
from rollbook.records.identity import TASK_INDEX_KEY_NAME, is_index
from rollbook.records.keys import RESPONSES_CREATE_PARAMS_KEY
from rollbook.records.source import SourceRow, is_materialized
from rollbook.records.task_content import content_digest

_LISTED: Final = 20


class RowChecks(msgspec.Struct):
    """Looks at rows as they stream by; `finish` raises for all that were at fault."""

    prompt_is_filled_in: bool = False
    _faults: list[str] = msgspec.field(default_factory=list)
    _without_prompt: list[str] = msgspec.field(default_factory=list)
    _indexed: int = 0
    _unindexed: str | None = None
    _content: dict[object, tuple[bytes, str]] = msgspec.field(default_factory=dict)
    _clashes: list[str] = msgspec.field(default_factory=list)

    def watch(self, rows: Iterable[SourceRow]) -> Iterator[SourceRow]:
        """Yield `rows` up to the first one whose names are at fault, looking at all of them."""
        for source in rows:
            self.look(source)
            if not self._faults:
                yield source
        self.finish()

    def look(self, source: SourceRow) -> None:
        """Look at one row."""
        self._look_at_prompt(source)
        faults = [f"{source.place}: {fault}" for fault in faults_in_names(source.row)]
        self._faults += faults
        if not faults:
            self._look_at_ids(source)

    def finish(self) -> None:
        """Raise for every row at fault."""
        if self._faults:
            raise InputError(_listed(self._faults, "\n"))
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
        block = source.row.get(RESPONSES_CREATE_PARAMS_KEY)
        if is_materialized(source.row) or (self.prompt_is_filled_in and block is None):
            return
        if not isinstance(block, dict):
            self._without_prompt.append(source.place)

    def _look_at_ids(self, source: SourceRow) -> None:
        index = source.row.get(TASK_INDEX_KEY_NAME)
        if index is None:
            self._unindexed = self._unindexed or source.place
        else:
            self._indexed += 1
        number = None if index is None else (TASK_INDEX_KEY_NAME, index)
        names = [name for name in (number, task_name(source.row)) if name is not None]
        if names:
            self._same_content(names, _said_by(source), source.place)

    def _same_content(self, names: Iterable[tuple[object, object]], said: bytes, at: str) -> None:
        for name in names:
            content, place = self._content.setdefault(name, (said, at))
            if content != said:
                self._clashes.append(f"{name[1]!r} at {place} and {at}")


def _said_by(source: SourceRow) -> bytes:
    """Return what repeats of a task have alike: a row's text; where its number says so, the content of its task."""
    return content_digest(source.row) if is_index(source.row.get(TASK_INDEX_KEY_NAME)) else source.digest


def _listed(places: list[str], between: str = ", ") -> str:
    more = f"{between}and {len(places) - _LISTED} more" if len(places) > _LISTED else ""
    return between.join(places[:_LISTED]) + more
