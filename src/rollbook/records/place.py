"""Where a saved line lies: which of a run's files, and its bytes.

Rules:
* Offsets and lengths are bytes and include the newline; lines are numbered from 1.

Source: collection.md §5.4.1.
"""

from enum import Enum
from typing import NamedTuple

import msgspec


class File(Enum):
    """Which of a run's files a line belongs to."""

    RESULTS = "results"
    FAILURES = "failures"


class Place(msgspec.Struct, frozen=True):
    """One line of one file."""

    file: File
    offset: int
    length: int
    line: int


class Block(NamedTuple):
    """Lines that follow each other: the first one's number and offset, the length of each, and each without its end."""

    number: int
    offset: int
    lengths: list[int]
    texts: list[bytes]

    def part(self, start: int, stop: int) -> "Block":
        """Return the lines from `start` to before `stop`."""
        if start == 0 and stop >= len(self.texts):
            return self
        offset = self.offset + sum(self.lengths[:start])
        return Block(self.number + start, offset, self.lengths[start:stop], self.texts[start:stop])
