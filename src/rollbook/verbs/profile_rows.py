"""The rows of runs that are profiled, read where they lie: results, and of each task the first line of the plan.

Rules:
* Nothing is kept of a row. Of a plan it is kept where each task's first line begins.
* Lines that are asked for lie near each other, as a run writes them, or anywhere: a block is read only where they do.

Source: collection.md §9.4.
"""

import os
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from itertools import accumulate, chain, compress, islice
from operator import lt, ne
from pathlib import Path
from typing import Final

from rollbook.ledger.projection import BOM
from rollbook.ledger.reader import plain_blocks, plain_lines
from rollbook.records.columns import PLANNED
from rollbook.records.reading import PLAN_HEAD, UNREADABLE
from rollbook.verbs.placed_rows import PlacedRows
from rollbook.verbs.profile_run import ProfiledRun

_BLOCK: Final = 1 << 20
_BEHIND: Final = 1 << 18
_NEAR: Final = 4 * _BLOCK
_LARGEST_TASK: Final = 1 << 62
_Lines = tuple[Sequence[int], Sequence[int], Sequence[int]]
"""Of some lines, each one's task, offset and length."""


class NearbyReader:
    """Reads pieces of a file; of those that lie near the one before them, many at once."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._block = b""
        self._start = self._before = 0

    def read(self, offset: int, length: int) -> bytes:
        """Return `length` bytes from `offset` on, fewer where the file ends."""
        begin = offset - self._start
        if begin < 0 or begin + length > len(self._block):
            is_near, self._before = abs(offset - self._before) < _NEAR, offset
            if not is_near or length > _BLOCK - _BEHIND:
                return os.pread(self._descriptor, length, offset)
            self._start = max(0, offset - _BEHIND)
            self._block = os.pread(self._descriptor, _BLOCK, self._start)
            begin = offset - self._start
        return self._block[begin : begin + length]


class RowReader:
    """Reads the rows of runs; `holding` closes their files."""

    def __init__(self, holding: ExitStack) -> None:
        self._holding = holding
        self._plans: dict[int, _PlanLines] = {}

    def results(self, run: ProfiledRun) -> Callable[[int], bytes]:
        """Return what gives the line of a result of `run`, by its row in the table of records."""
        table, read = run.standings.table, NearbyReader(self._open(run.paths.output)).read
        offsets, lengths = table.offsets, table.lengths

        def line(row: int) -> bytes:
            offset = offsets[row]
            found = read(offset, lengths[row])
            return found if offset else found.removeprefix(BOM)

        return line

    def results_in(self, run: ProfiledRun) -> Callable[[Sequence[int]], Iterator[bytes]]:
        """Return what gives the lines of many results of `run`, by their rows in the table of records."""
        table, lines = run.standings.table, PlacedRows(run.paths.output)
        self._holding.callback(lines.close)
        offsets, lengths = table.offsets, table.lengths

        def found(rows: Sequence[int]) -> Iterator[bytes]:
            pieces = lines.pieces([offsets[row] for row in rows], [lengths[row] for row in rows])
            return chain.from_iterable(pieces)

        return found

    def planned(self, run: ProfiledRun, task: int) -> bytes | None:
        """Return the first line of `task` in the plan of `run`, None where there is no plan."""
        if run.plan is None:
            return None
        lines = self._plans.get(id(run))
        if lines is None:
            lines = self._plans[id(run)] = _PlanLines(run, run.plan, NearbyReader(self._open(run.plan)))
        return lines.first(task)

    def _open(self, path: Path) -> int:
        return self._holding.enter_context(path.open("rb")).fileno()


class _PlanLines:
    """Where the first line of each task of a plan lies."""

    def __init__(self, run: ProfiledRun, plan: Path, reader: NearbyReader) -> None:
        self._read = reader.read
        self._tasks, self._offsets, self._lengths = array("q"), array("q"), array("q")
        before = -1
        for tasks, offsets, lengths in _known_lines(run, plan) if run.plan_is_plain else _read_lines(plan):
            is_first = list(map(ne, tasks, chain((before,), tasks)))
            self._tasks.extend(compress(tasks, is_first))
            self._offsets.extend(compress(offsets, is_first))
            self._lengths.extend(compress(lengths, is_first))
            before = tasks[-1] if tasks else before
        rises = all(map(lt, self._tasks, self._tasks[1:]))
        self._places = None if rises else _first_places(self._tasks)

    def first(self, task: int) -> bytes | None:
        at = bisect_left(self._tasks, task) if self._places is None else self._places.get(task, len(self._tasks))
        if at == len(self._tasks) or self._tasks[at] != task:
            return None
        line = self._read(self._offsets[at], self._lengths[at])
        return line if self._offsets[at] else line.removeprefix(BOM)


def _first_places(tasks: "array[int]") -> dict[int, int]:
    places: dict[int, int] = {}
    for at, task in enumerate(tasks):
        places.setdefault(task, at)
    return places


def _known_lines(run: ProfiledRun, plan: Path) -> Iterator[_Lines]:
    """Yield the lines of a plan whose rollouts have their seats in its order."""
    keys, flags, seat = run.standings.columns.seats.keys, run.standings.columns.flags, 0
    for block in plain_blocks(plan):
        is_line = [not text.isspace() for text in block.texts]
        seats = slice(seat, seat + sum(is_line))
        planned = [flag & PLANNED for flag in flags[seats]]
        known = planned.index(0) if 0 in planned else len(planned)
        places = compress(zip(accumulate(block.lengths, initial=block.offset), block.lengths, strict=False), is_line)
        offsets, lengths = zip(*islice(places, known), strict=True) if known else ((), ())
        yield [number >> 32 for number in keys[seats][:known]], offsets, lengths
        if known < sum(is_line):
            return  # what lies behind the plan that is in force
        seat = seats.stop


def _read_lines(plan: Path) -> Iterator[_Lines]:
    """Yield the lines of a plan one by one."""
    decode = PLAN_HEAD.decode
    for _, offset, length, text in plain_lines(plan):
        try:
            task = decode(text).task
        except UNREADABLE:
            continue
        if task < _LARGEST_TASK:
            yield (task,), (offset,), (length,)
