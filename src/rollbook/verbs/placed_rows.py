"""Lines of a file, read back from where they lie: in whatever order, and quickly where they follow each other.

Rules:
* What is read ahead is bounded; a line that does not follow the one before it is read alone.
"""

import os
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from rollbook.ledger.projection import BOM

_AHEAD: Final = 1 << 16


class PlacedRows:
    """The lines of one file. A context manager."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_RDONLY)
        self._piece = b""
        self._begins = 0
        self._follows = 0

    def at(self, offset: int, length: int) -> bytes:
        """Return the line of `length` bytes at `offset`, without the mark that an editor put before the first one."""
        start = offset - self._begins
        if not 0 <= start <= len(self._piece) - length:
            wanted = max(length, _AHEAD) if offset == self._follows else length
            self._piece, self._begins, start = os.pread(self._file, wanted, offset), offset, 0
        self._follows = offset + length
        line = self._piece[start : start + length]
        return line if offset else line.removeprefix(BOM)

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
