"""A saved row by where it lies: found in one scan, loaded when its contents are asked for.

Rules:
* Offsets and lengths are bytes of the file, the newline included; a row is never found by searching again.
* What is read back is what was found: another file, another row or another attempt at the place is refused by file and
  line.
* The keys that say who a row is are never skipped.
* A number that legacy migration gave an attempt is read into the row; the file keeps its own.

Source: collection.md §5.3, §5.4.1, §5.4.5, §21.3 (20).
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO, Final

from rollbook.errors import LedgerError
from rollbook.ledger.projection import CHUNK_BYTES, PROJECTED_ROW_BYTES, UNREADABLE, read_row
from rollbook.ledger.tail import TailRepair, repair_tail
from rollbook.records.identity import (
    ATTEMPT_INDEX_KEY_NAME,
    ROLLOUT_ID_KEY_NAME,
    ROLLOUT_INDEX_KEY_NAME,
    RUN_ID_KEY,
    TASK_INDEX_KEY_NAME,
)
from rollbook.records.json_values import JsonObject
from rollbook.records.row_identity import Identity, identity_of_row

_WHO: Final = frozenset(
    {TASK_INDEX_KEY_NAME, ROLLOUT_INDEX_KEY_NAME, ROLLOUT_ID_KEY_NAME, ATTEMPT_INDEX_KEY_NAME, RUN_ID_KEY}
)


@dataclass(frozen=True, slots=True)
class RolloutRecord:
    """One line of a file. `file_identity` is the device and inode that it was found in."""

    path: Path
    offset: int
    length: int
    line_number: int = 0
    legacy_attempt_index: int | None = None
    file_identity: tuple[int, int] | None = None
    expected_identity: Identity | None = None
    skip_keys: frozenset[str] = frozenset()

    @property
    def place(self) -> str:
        """The file and line, as an error names them."""
        return f"{self.path}:{self.line_number}"

    def read(self, projected_above: int = PROJECTED_ROW_BYTES) -> JsonObject:
        """Load the row, with the attempt number that legacy migration gave it.

        Raises:
            LedgerError: what lies there is not the row that was found; names file and line.

        """
        try:
            with self.path.open("rb") as file:
                return self.read_from(file, projected_above)
        except OSError as error:
            raise LedgerError(f"{self.place}: cannot be read back: {error.strerror or error}") from error

    def read_from(self, file: BinaryIO, projected_above: int = PROJECTED_ROW_BYTES) -> JsonObject:
        """Load the row from its file, which is open for reading.

        Raises:
            LedgerError: what lies there is not the row that was found; names file and line.

        """
        if self.file_identity not in {None, _identity_of_file(file)}:
            raise self._changed("the file was replaced by another one")
        file.seek(self.offset)
        row, length = self._row_in(file, projected_above)
        if row is None or length != self.length:
            raise self._changed("the file no longer holds a row there")
        if self.legacy_attempt_index is not None:
            row[ATTEMPT_INDEX_KEY_NAME] = self.legacy_attempt_index
        found = identity_of_row(row)
        if self.expected_identity not in {None, found}:
            raise self._changed(f"it holds {_named(found)} where {_named(self.expected_identity)} was")
        return row

    def _row_in(self, file: BinaryIO, projected_above: int) -> tuple[JsonObject | None, int]:
        try:
            return read_row(file, self.length, self.skip_keys - _WHO, projected_above)
        except UNREADABLE as error:
            raise self._changed(f"no rollout record: {error}") from error

    def _changed(self, what: str) -> LedgerError:
        return LedgerError(f"{self.place}: changed since it was read: {what}. Run the command again to read it anew")


def indexed_records(
    path: Path,
    end_offset: int | None = None,
    skip_keys: frozenset[str] = frozenset(),
    projected_above: int = PROJECTED_ROW_BYTES,
) -> Iterator[tuple[RolloutRecord, JsonObject]]:
    """Yield each committed row of `path` and where it lies, one at a time; nothing if the file is absent.

    Nothing beyond `end_offset` is read. A row of more than `projected_above` bytes comes with null in the place of its
    `skip_keys`.

    Raises:
        LedgerError: a committed line is no JSON object; names file and line.

    """
    if not path.exists():
        return
    with path.open("rb", buffering=CHUNK_BYTES) as file:
        status, offset, number = _identity_of_file(file), 0, 0
        while True:
            number += 1
            found = RolloutRecord(path, offset, 0, number, file_identity=status, skip_keys=skip_keys)
            row, length = _next_row(file, found, end_offset, projected_above)
            if length == 0:
                return
            if row is not None:
                yield replace(found, length=length, expected_identity=identity_of_row(row)), row
            offset += length


def _next_row(
    file: BinaryIO, found: RolloutRecord, end_offset: int | None, projected_above: int
) -> tuple[JsonObject | None, int]:
    left = None if end_offset is None else end_offset - found.offset
    try:
        return read_row(file, left, found.skip_keys - _WHO, projected_above)
    except UNREADABLE as error:
        raise LedgerError(
            f"{found.place}: not a rollout record: {error}. Nothing was changed; mend the line, then run again"
        ) from error


def read_records(path: Path) -> Iterator[JsonObject]:
    """Yield each committed row of `path`; nothing if the file is absent.

    Raises:
        LedgerError: a committed line is no JSON object; names file and line.

    """
    return (row for _, row in indexed_records(path))


def prepare_append(path: Path) -> TailRepair | None:
    """Make the end of `path` ready for another line, and say what was done; complete lines stay as they are."""
    return repair_tail(path)


def _identity_of_file(file: BinaryIO) -> tuple[int, int]:
    status = os.fstat(file.fileno())
    return status.st_dev, status.st_ino


def _named(identity: Identity | None) -> str:
    if identity is None:
        return "a row that names no rollout"
    run_id, rollout_id, attempt = identity
    return f"rollout {rollout_id}, attempt {attempt}, of {f'run {run_id}' if run_id else 'no named run'}"
