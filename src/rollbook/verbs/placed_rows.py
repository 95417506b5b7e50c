"""Lines of a file, read back from where they lie: in whatever order, and quickly where they follow each other.

Rules:
* What is read ahead is bounded; a line that does not follow the one before it is read alone.
* Lines that lie near each other are read together, where little else lies between them.
* A line that lacks its newline, as the last one of a file may, is returned with it.
"""

import os
from collections.abc import Iterator, Sequence
from itertools import accumulate
from operator import add
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from rollbook.ledger.projection import BOM

_AHEAD: Final = 1 << 16
_TOGETHER: Final = 1 << 17
"""So many bytes of lines are held together, whatever one line holds."""
_WORTH: Final = 4


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
        return _ended(line if offset else line.removeprefix(BOM))

    def pieces(self, offsets: Sequence[int], lengths: Sequence[int]) -> Iterator[list[bytes]]:
        """Yield the lines at these places in this order, as many at a time as are held together."""
        begin = 0
        while begin < len(offsets):
            ends = accumulate(lengths[begin:])
            stop = begin + 1 + next((at for at, end in enumerate(ends) if end >= _TOGETHER), len(offsets))
            yield self._together(offsets[begin:stop], lengths[begin:stop])
            begin = stop

    def _together(self, offsets: Sequence[int], lengths: Sequence[int]) -> list[bytes]:
        begin, end = min(offsets), max(map(add, offsets, lengths))
        if end - begin > _WORTH * sum(lengths):
            return [self.at(offset, length) for offset, length in zip(offsets, lengths, strict=True)]
        text = os.pread(self._file, end - begin, begin)
        lines = [
            text[offset - begin : offset - begin + length] for offset, length in zip(offsets, lengths, strict=True)
        ]
        lines = lines if begin else [line.removeprefix(BOM) for line in lines]
        return lines if text.endswith(b"\n") else [_ended(line) for line in lines]

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _ended(line: bytes) -> bytes:
    return line if line.endswith(b"\n") else line + b"\n"
