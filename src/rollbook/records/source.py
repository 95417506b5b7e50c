"""A row as a dataset holds it: the text that makes it one task, its fields, and where it stands.

Rules:
* Two rows are the same task when their text is the same; the text is never parsed to compare. Rows that bring the
  number of their task along are the same task when the number is.

Source: collection.md §1.1, §2.4.
"""

import hashlib
from collections.abc import Mapping

import msgspec

from rollbook.records.identity import TASK_INDEX_KEY_NAME, is_index
from rollbook.records.json_values import JsonMapping, JsonObject


class SourceRow(msgspec.Struct, frozen=True):
    """One row of a dataset: `text` is what decides whether two rows are the same task."""

    number: int
    text: bytes
    row: JsonObject
    origin: str = ""

    @property
    def digest(self) -> bytes:
        """What stands for the row's text where many rows are compared: 16 bytes of BLAKE2b."""
        return hashlib.blake2b(self.text, digest_size=16).digest()

    @property
    def task(self) -> bytes:
        """What stands for the row's task: 16 bytes of BLAKE2b, of the number that it brings along or of its text."""
        index = self.row.get(TASK_INDEX_KEY_NAME)
        if not is_index(index):
            return self.digest
        return hashlib.blake2b(str(index).encode(), digest_size=16, person=b"task number").digest()

    @property
    def place(self) -> str:
        """Where the row stands, for messages."""
        return f"{self.origin}:{self.number}" if self.origin else f"row {self.number}"


def is_materialized(row: JsonMapping) -> bool:
    """Whether `row` is an episode task already: its `task_id` is an object and it has a `task_input`."""
    return isinstance(row.get("task_id"), Mapping) and "task_input" in row
