"""Where a saved line lies: which of a run's files, and its bytes.

Rules:
* Offsets and lengths are bytes and include the newline; lines are numbered from 1.

Source: collection.md §5.4.1.
"""

from enum import Enum

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
