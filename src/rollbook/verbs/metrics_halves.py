"""The metrics of very many rows, of which a second process takes in the later ones meanwhile.

Rules:
* Both go on from the same first rows, and what they come to is put together only where neither met a row that looks
  different from those: then it is what one process comes to, byte for byte. Else this one takes in the others as well.
* What the other one failed at is met again here, and raised here.
"""

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import BinaryIO, Final

import msgspec

from rollbook.scoring.streamed import StreamedMetrics
from rollbook.scoring.streamed_part import ApartError, PartColumn, PartCounts
from rollbook.verbs.second_process import SecondProcess
from rollbook.verbs.task_list import TaskList

Rows = Iterator[Sequence[bytes]]
_HEADER: Final = 8
_AT_ONCE: Final = 1 << 20
_encode: Final = msgspec.msgpack.Encoder().encode


class AggregationOverError(Exception):
    """Whoever wanted the metrics does not want them any more."""


class Cut(msgspec.Struct, frozen=True):
    """Where the rows of one entry are cut: those before `taught` show how rows look, those from `middle` on are apart.

    `rows` gives those between two places; no task has rows on both sides of `middle`.
    """

    rows: Callable[[int, int | None], Rows]
    taught: int
    middle: int


class _Said(msgspec.Struct, frozen=True):
    """How many entries of tasks the second process wrote, and what its rows came to."""

    tasks: int
    counts: PartCounts


def take_rows(metrics: StreamedMetrics, rows: Rows, step: Callable[[], None]) -> None:
    """Take rows in, with a `step` before each of them that are read together."""
    for some in rows:
        step()
        metrics.add_all(some)


def take_halves(metrics: StreamedMetrics, tasks: TaskList, cut: Cut, folder: Path, is_over: Callable[[], bool]) -> None:
    """Take in all rows, half of them by a second process, which writes files without a name in `folder`.

    Raises:
        AggregationOverError: it is over.
        OSError: rows cannot be read, or the disk does not take what is written.

    """

    def step() -> None:
        if is_over():
            raise AggregationOverError

    take_rows(metrics, cut.rows(0, cut.taught), step)
    before = metrics.lessons
    with ExitStack() as holding:
        second = _Second(metrics, cut, folder, holding)
        take_rows(metrics, cut.rows(cut.taught, cut.middle), step)
        if metrics.lessons != before or not second.has_done_it(is_over):
            step()
            take_rows(metrics, cut.rows(cut.middle, None), step)
            return
        metrics.end_tasks()
        second.hand_over(metrics, tasks)


class _Second:
    """The second process: it writes the entries of tasks to one file, and what its rows came to, to another."""

    def __init__(self, metrics: StreamedMetrics, cut: Cut, folder: Path, holding: ExitStack) -> None:
        self._entries = holding.enter_context(TemporaryFile(dir=folder))  # noqa: SIM115  `holding` closes it
        self._answer = holding.enter_context(TemporaryFile(dir=folder))  # noqa: SIM115  the same
        self._process: SecondProcess | None = None
        with suppress(OSError):
            self._process = SecondProcess(lambda step: self._take(metrics, cut, step))
            holding.callback(self._process.end)

    def _take(self, metrics: StreamedMetrics, cut: Cut, step: Callable[[], None]) -> None:
        """Do the second process's work."""
        tasks, before = TaskList(self._entries), metrics.lessons
        own = metrics.beside(tasks.write)
        take_rows(own, cut.rows(cut.middle, None), step)
        counts, columns = own.part()
        tasks.flush()
        if own.lessons != before:
            raise ApartError
        _write(self._answer, _encode(_Said(tasks.count, counts)))
        for column in columns:
            _write(self._answer, _encode(column))
        self._entries.flush()
        self._answer.flush()

    def has_done_it(self, is_over: Callable[[], bool]) -> bool:
        """Wait for its end unless it `is_over`, and return whether it took in all its rows."""
        return self._process is not None and self._process.has_done_it(is_over)

    def hand_over(self, metrics: StreamedMetrics, tasks: TaskList) -> None:
        """Put what it did where all the rest is."""
        said = msgspec.msgpack.decode(_read(self._answer, begin=True), type=_Said)
        tasks.append(said.tasks, self._copied)
        metrics.take((said.counts, self._columns()))

    def _copied(self, file: BinaryIO) -> None:
        self._entries.seek(0)
        shutil.copyfileobj(self._entries, file, _AT_ONCE)

    def _columns(self) -> Iterator[PartColumn]:
        decode = msgspec.msgpack.Decoder(PartColumn).decode
        while message := _read(self._answer):
            yield decode(message)


def _write(file: BinaryIO, message: bytes) -> None:
    file.write(len(message).to_bytes(_HEADER, "big") + message)


def _read(file: BinaryIO, *, begin: bool = False) -> bytes:
    if begin:
        file.seek(0)
    return file.read(int.from_bytes(file.read(_HEADER), "big"))
