"""The list of tasks' entries in an entry of aggregate metrics, as it is written to the file.

Rules:
* Entries are written many at a time, laid out as they lie in the file: in a list, in an entry, in a list.
"""

from collections.abc import Callable
from typing import BinaryIO, Final

from rollbook.scoring.entry_layout import Layout

LAYOUT: Final = Layout(3)
"""How the entries are laid out that a list takes."""
_AT_TASK: Final = b"\n      "
_AT_ENTRY: Final = b"\n  "
_AT_ONCE: Final = 64


class TaskList:
    """A list of entries that grows in `file`; `count` says how many there are."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._waiting: list[bytes] = []
        self.count = 0

    def write(self, entry: bytes) -> None:
        """Write one, which is laid out."""
        self._waiting.append(entry)
        self.count += 1
        if len(self._waiting) >= _AT_ONCE:
            self.flush()

    def flush(self) -> None:
        """Write what waits."""
        if self._waiting:
            is_first = self.count == len(self._waiting)
            self._file.write((b"" if is_first else b",") + _AT_TASK + (b"," + _AT_TASK).join(self._waiting))
            self._waiting.clear()

    def append(self, count: int, copied: Callable[[BinaryIO], None]) -> None:
        """Write so many more entries, which `copied` writes as another list did."""
        self.flush()
        if count:
            self._file.write(b"," if self.count else b"")
            copied(self._file)
            self.count += count

    def end(self) -> bytes:
        """Write what waits, and return how the list ends."""
        self.flush()
        return _AT_ENTRY + b"  ]" if self.count else b"]"
