"""The file of tasks: each task's entry with its planned row and its pass rates, ordered by task.

Rules:
* With one label entries are written as they come; with several they wait aside, by label, and are merged by task.
* Under fan-out each entry says whose it is.

Source: collection.md §9.4.
"""

import heapq
import tempfile
from array import array
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from functools import lru_cache
from typing import BinaryIO, Final

import msgspec

from rollbook.records.keys import AGENT_REF_KEY
from rollbook.scoring.profile import Task
from rollbook.scoring.profile_rates import TaskRates, binary_rates
from rollbook.verbs.profile_export import planned_row, sample_of, source_row
from rollbook.verbs.profile_rows import RowReader
from rollbook.verbs.profile_run import ProfiledRun

PASS_RATES: Final = b"pass_at_k"


class Entries:
    """Writes entries to `file`. `by_label`: a task had several labels, so that entries say whose they are."""

    def __init__(self, file: BinaryIO, reader: RowReader, *, several: bool) -> None:
        self._file = file
        self._reader = reader
        self._several = several
        self._waiting: dict[str, _Waiting] = {}
        self._holding = ExitStack()
        self._samples: dict[tuple[int, int], msgspec.Raw] = {}
        self.by_label = False

    def taking(self, label: str | None) -> Callable[[Task[ProfiledRun], bytes], None]:
        """Return what takes the entries of `label`."""
        if not self._several:
            return self._write
        waiting = self._waiting[str(label)] = _Waiting(self._holding)

        def wait(task: Task[ProfiledRun], entry: bytes) -> None:
            waiting.add(task.index, _with_rates(entry, task.rates))

        return wait

    def _write(self, task: Task[ProfiledRun], entry: bytes) -> None:
        self._file.write(_with_rates(entry, task.rates) + b"\n")

    def sample(self, task: Task[ProfiledRun]) -> msgspec.Raw | None:
        """Return what an entry shows of a task: its planned row, None where there is no plan."""
        known = self._samples.pop((id(task.origin), task.index), None)
        if known is not None:
            return known
        line = self._reader.planned(task.origin, task.index)
        return None if line is None else sample_of(planned_row(line))

    def source(self, task: Task[ProfiledRun]) -> bytes | None:
        """Return the source row of a task whose entry did not go out yet, None where no plan has it."""
        line = self._reader.planned(task.origin, task.index)
        if line is None:
            return None
        row = planned_row(line)
        if task.measured:
            self._samples[id(task.origin), task.index] = sample_of(row)
        return source_row(line, row)

    def end(self) -> None:
        """Write what waits."""
        with self._holding:
            entries = (waiting.entries(label) for label, waiting in sorted(self._waiting.items()))
            for _, label, entry in heapq.merge(*entries):
                self._file.write((_with_label(entry, label) if self.by_label else entry) + b"\n")


class _Waiting:
    """The entries of one label, aside, with the task of each."""

    def __init__(self, holding: ExitStack) -> None:
        self._file = holding.enter_context(tempfile.TemporaryFile())  # noqa: SIM115  `holding` closes it
        self._tasks = array("Q")

    def add(self, task: int, entry: bytes) -> None:
        self._tasks.append(task)
        self._file.write(entry + b"\n")

    def entries(self, label: str) -> Iterator[tuple[int, str, bytes]]:
        self._file.seek(0)
        return ((task, label, self._file.readline().rstrip(b"\n")) for task in self._tasks)


def _with_label(entry: bytes, label: str) -> bytes:
    return entry[:-1] + b"," + msgspec.json.encode({AGENT_REF_KEY: {"name": label}})[1:]


def _with_rates(entry: bytes, rates: TaskRates) -> bytes:
    correct = rates.correct
    shown = _ending(rates.shown()) if correct is None else _ending_of(len(rates.rewards), correct)
    return entry[:-1] + shown


@lru_cache(maxsize=1 << 16)
def _ending_of(n: int, correct: int) -> bytes:
    return _ending(binary_rates(n, correct))


def _ending(shown: Mapping[int, float]) -> bytes:
    """Return how an entry ends that shows pass rates."""
    return b',"' + PASS_RATES + b'":' + msgspec.json.encode({str(k): rate for k, rate in shown.items()}) + b"}"
