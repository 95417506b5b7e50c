"""In which order the lines of a plan are sent: places in a file, and no rows.

Rules:
* A task whose repeats are scored together stays in one piece, at the place of its first line.
* Pieces with a recorded duration go first, the longest first; a piece counts as its longest line does.
* Then turns are taken: one piece of each group after the other, groups by their first appearance. A group that is
  through takes no further turn.
* Each step keeps the order that it finds.

Source: collection.md §3.4; case RC-89.
"""

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Final, NamedTuple, TypeVar

import msgspec

_T = TypeVar("_T")
_AT_ONCE: Final = 4096


class Spot(NamedTuple):
    """One line: its bytes, its task, whose turn it takes, and the seconds that an attempt of it took, or 0."""

    offset: int
    length: int
    task: int
    group: int = 0
    seconds: float = 0.0


class _Pieces(msgspec.Struct, frozen=True):
    """What stays together: piece `n` is `lines[starts[n]:starts[n + 1]]`."""

    lines: Sequence[int]
    starts: Sequence[int]

    def __len__(self) -> int:
        return len(self.starts) - 1

    def of(self, piece: int) -> Sequence[int]:
        return self.lines[self.starts[piece] : self.starts[piece + 1]]

    def first(self, piece: int) -> int:
        return self.lines[self.starts[piece]]


class Order(msgspec.Struct):
    """Lines that are to be sent, some thirty bytes each; `whole_tasks` keeps those of a task together."""

    whole_tasks: bool = False
    _offsets: "array[int]" = msgspec.field(default_factory=lambda: array("Q"))
    _lengths: "array[int]" = msgspec.field(default_factory=lambda: array("I"))
    _tasks: "array[int]" = msgspec.field(default_factory=lambda: array("Q"))
    _groups: "array[int]" = msgspec.field(default_factory=lambda: array("I"))
    _seconds: dict[int, float] = msgspec.field(default_factory=dict)

    def add(self, spot: Spot) -> None:
        """Take in the next line of the file."""
        if spot.seconds > 0:
            self._seconds[len(self._offsets)] = spot.seconds
        self._offsets.append(spot.offset)
        self._lengths.append(spot.length)
        self._tasks.append(spot.task)
        self._groups.append(spot.group)

    def __iter__(self) -> Iterator[tuple[int, int] | None]:
        """Yield (offset, length) of each line, in the order in which they are sent; None stands for a pause."""
        count = len(self._offsets)
        pieces = _together(self._tasks) if self.whole_tasks else _Pieces(range(count), range(count + 1))
        queues: dict[int, array[int]] = {}
        for number, piece in enumerate(_longest_first(pieces, self._seconds)):
            queues.setdefault(self._groups[pieces.first(piece)], array("I")).append(piece)
            if number % _AT_ONCE == 0:
                yield None
        for piece in in_turn(queues.values()):
            for line in pieces.of(piece):
                yield self._offsets[line], self._lengths[line]


def in_turn(queues: Iterable[Iterable[_T]]) -> Iterator[_T]:
    """Yield one of each queue after the other until all are through."""
    turns = [iter(queue) for queue in queues]
    while turns:
        left = []
        for turn in turns:
            for one in turn:
                left.append(turn)
                yield one
                break
        turns = left


def _together(tasks: "array[int]") -> _Pieces:
    """Return the lines of each task as one piece, tasks by their first lines."""
    numbers: dict[int, int] = {}
    piece_of = array("I", (numbers.setdefault(task, len(numbers)) for task in tasks))
    sizes = Counter(piece_of)
    starts = array("I", accumulate((sizes[piece] for piece in range(len(numbers))), initial=0))
    free, lines = starts[:], array("I", bytes(4 * len(tasks)))
    for line, piece in enumerate(piece_of):
        lines[free[piece]] = line
        free[piece] += 1
    return _Pieces(lines, starts)


def _longest_first(pieces: _Pieces, seconds: Mapping[int, float]) -> Iterator[int]:
    if not seconds:
        yield from range(len(pieces))
        return
    longest: dict[int, float] = {}
    for piece in range(len(pieces)):
        timed = [seconds[line] for line in pieces.of(piece) if line in seconds]
        if timed:
            longest[piece] = max(timed)
    yield from sorted(longest, key=longest.__getitem__, reverse=True)
    yield from (piece for piece in range(len(pieces)) if piece not in longest)
