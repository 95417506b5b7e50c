"""How many different texts there are under each name, exactly, in memory that does not follow their number.

Rules:
* A text is remembered by eight bytes. So many at most wait in memory, of all names together; more go to a file
  without a name, in sorted stretches that are merged when they are counted.
* Two different texts have the same eight bytes once in some 10^7 files of 10^6 texts; they are counted as one then.
"""

import heapq
import tempfile
from array import array
from collections import defaultdict
from collections.abc import Iterator
from itertools import groupby
from typing import BinaryIO, Final

_MOST_HELD: Final = 1 << 18
_READ_AT_ONCE: Final = 1024
_CODE: Final = "q"
_WIDTH: Final = array(_CODE).itemsize


class DistinctTexts:
    """Counts the different texts of each name; `most_held` texts wait in memory."""

    def __init__(self, most_held: int = _MOST_HELD) -> None:
        self._most = most_held
        self._held: dict[str, set[int]] = defaultdict(set)
        self._count = 0
        self._file: BinaryIO | None = None
        self._stretches: dict[str, list[tuple[int, int]]] = defaultdict(list)

    def add(self, name: str, text: str) -> None:
        """Note a text under a name."""
        held = self._held[name]
        before = len(held)
        held.add(hash(text))
        self._count += len(held) - before
        if self._count >= self._most:
            self._spill()

    def count(self, name: str) -> int:
        """Return how many different texts were noted under a name."""
        held = self._held.get(name, set())
        stretches = [self._read(*stretch) for stretch in self._stretches.get(name, ())]
        if not stretches:
            return len(held)
        return sum(1 for _ in groupby(heapq.merge(sorted(held), *stretches)))

    def close(self) -> None:
        """Let go of the file."""
        if self._file is not None:
            self._file.close()

    def _spill(self) -> None:
        if self._file is None:
            self._file = tempfile.TemporaryFile()  # noqa: SIM115  it lives as long as what counts does
        for name, held in self._held.items():
            at = self._file.seek(0, 2)
            self._file.write(array(_CODE, sorted(held)).tobytes())
            self._stretches[name].append((at, len(held)))
        self._held.clear()
        self._count = 0

    def _read(self, at: int, length: int) -> Iterator[int]:
        assert self._file is not None  # noqa: S101  a stretch lies in the file
        for done in range(0, length, _READ_AT_ONCE):
            numbers = array(_CODE)
            self._file.seek(at + done * _WIDTH)
            numbers.frombytes(self._file.read(min(_READ_AT_ONCE, length - done) * _WIDTH))
            yield from numbers
