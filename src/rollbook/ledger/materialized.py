"""The materialized inputs: the plan on disk, written whole before anything is sent, and read back line by line.

Rules:
* One line per owed rollout, in plan order; a resume never rewrites it.
* A plan that turns out not to be runnable leaves no file.

Source: collection.md §1.5.
"""

from collections.abc import Iterable
from typing import Protocol

from rollbook.records.codec import encode
from rollbook.records.json_values import JsonObject


class Sink(Protocol):
    """Where bytes are written to."""

    def write(self, data: bytes, /) -> int:
        """Append `data`."""
        ...


def write_rows(file: Sink, rows: Iterable[JsonObject]) -> int:
    """Write one line per row and return their number."""
    written = 0
    for row in rows:
        file.write(encode(row) + b"\n")
        written += 1
    return written
