"""The metrics of one server's results, from rows that come one after the other: many more than memory holds.

Rules:
* What comes out is what `compute_aggregate_metrics` makes of the same rows without hooks, key for key and value for
  value; the entries of tasks go out as each task ends.
* Rows come in (task, rollout) order; of a rollout there is one.
* Of a row nothing is kept but its numbers, eight bytes each.

Source: collection.md §6.4.
"""

from collections.abc import Callable, Iterable
from itertools import pairwise
from operator import lt

import msgspec

from rollbook.errors import InputError
from rollbook.records.identity import RolloutKey
from rollbook.records.json_values import JsonObject
from rollbook.scoring.across_repeats import across_repeats
from rollbook.scoring.aggregate import AggregateMetrics, default_key_metrics
from rollbook.scoring.performance import PerfColumns
from rollbook.scoring.repeats import entries_of
from rollbook.scoring.streamed_repeats import Repeats
from rollbook.scoring.streamed_shape import Flat, Names, RowShape, Text, relaid
from rollbook.scoring.streamed_tasks import TaskEntries

Sink = Callable[[bytes], object]
"""Takes the entry of one task: a JSON object, compact."""
Expected = Callable[[int], int | None]
"""How many rollouts of a task were planned; tasks are asked for in order."""
Shown = Callable[[int, Text], msgspec.Raw]
"""What an entry shows of a task, by its number and the first of its rows that measure."""


def _unknown(task: int) -> int | None:  # noqa: ARG001  nothing is known of any task
    return None


class StreamedMetrics:
    """The metrics of rows that are added in (task, rollout) order.

    Each task's entry goes to `sink` once its last row was added. `expected` says how many rollouts of a task were
    planned; where it does not know, those at hand are taken for all. `shown` says what an entry shows of its task;
    without it, the first row that measures, light.
    """

    def __init__(self, sink: Sink, expected: Expected = _unknown, shown: Shown | None = None) -> None:
        self._sink = sink
        self._expected = expected
        self._shown = shown
        self._shape = RowShape()
        self._names: Names = ()
        self._entries = TaskEntries(())
        self._repeats = Repeats()
        self._perf = PerfColumns()
        self._masked_indices: set[int] = set()
        self._counts = _Counts()
        self._task = -1
        self._rows: list[Flat] = []
        self._first: Text = b""

    def add(self, row: Text) -> None:
        """Take one row in: its JSON text, with or without its bulk.

        Raises:
            InputError: it names no rollout, or one that does not come after the one before it.
            msgspec.DecodeError, UnicodeDecodeError: it is no JSON object.

        """
        self.add_all((row,))

    def add_all(self, rows: Iterable[Text]) -> None:
        """Take rows in, as `add` does one."""
        shape = self._shape
        read_row = shape.read
        for row in rows:
            read = read_row(row)
            if shape.names is not self._names:
                self._rename()
            if read[0] != self._task:
                self._begin_task(read)
            if not self._first and not read[2]:
                self._first = row
            self._rows.append(read)

    def _rename(self) -> None:
        """Lay the rows that wait as the next ones are."""
        before, self._names = self._names, self._shape.names
        self._repeats.settle(before)
        self._rows = [relaid(row, before, self._names) for row in self._rows]
        self._entries = TaskEntries(self._names)

    def _begin_task(self, read: Flat) -> None:
        if read[0] < self._task:
            raise InputError(f"rollout {RolloutKey(*read[:2])} comes after task {self._task}: rows are sorted by task")
        self._end_task()
        self._task = read[0]

    def _end_task(self) -> None:
        rows, first = self._rows, self._first
        if not rows:
            return
        self._rows, self._first = [], b""
        columns = list(zip(*rows, strict=True))
        _refuse_disorder(self._task, columns[1])
        self._add_perfs(columns[3])
        if any(columns[2]):
            masked = [row for row in rows if row[2]]
            rows = [row for row in rows if not row[2]]
            columns = list(zip(*rows, strict=True))
            self._masked_indices.update(row[1] for row in masked)
            self._counts.masked += len(masked)
        if not rows:
            self._counts.masked_tasks += 1
            return
        self._counts.measured += len(rows)
        self._counts.measured_tasks += 1
        self._repeats.add(rows, self._names)
        sample = self._shape.sample(first) if self._shown is None else self._shown(self._task, first)
        self._sink(self._entries.entry(rows, columns, sample, self._expected(self._task)))

    def _add_perfs(self, perfs: tuple[object, ...]) -> None:
        if perfs.count(None) == len(perfs):
            self._perf.rows += len(perfs)
        else:
            for perf in perfs:
                self._perf.add(perf)

    def end(self) -> AggregateMetrics:
        """Return the metrics, without the entries of tasks, which the sink has by then; no row comes after this."""
        self._end_task()
        self._repeats.settle(self._names)
        coverage, perf = self._counts.coverage(), self._perf.summary()
        if not self._counts.measured:
            return AggregateMetrics(agent_metrics=dict(coverage), key_metrics=dict(coverage), perf_summary=perf)
        columns = self._repeats.columns()
        repeats = entries_of(columns, self._counts.measured_tasks) if len(columns) > 1 else []
        agent_metrics = self._repeats.described() | across_repeats(repeats)
        agent_metrics["num_repeats"] = len(self._repeats.indices() | self._masked_indices)
        agent_metrics |= coverage
        return AggregateMetrics(
            agent_metrics=agent_metrics,
            key_metrics=default_key_metrics(agent_metrics) | coverage,
            perf_summary=perf,
            repeat_level_metrics=repeats,
        )


class _Counts:
    """How many rows measure and how many were masked, and how many tasks have one that measures or none."""

    __slots__ = ("masked", "masked_tasks", "measured", "measured_tasks")

    def __init__(self) -> None:
        self.measured = self.masked = self.measured_tasks = self.masked_tasks = 0

    def coverage(self) -> JsonObject:
        """Return the `coverage/*` keys: none when nothing was masked."""
        if not self.masked:
            return {}
        return {
            "coverage/measured_rollouts": self.measured,
            "coverage/masked_rollouts": self.masked,
            "coverage/measured_tasks": self.measured_tasks,
            "coverage/fully_masked_tasks": self.masked_tasks,
        }


def _refuse_disorder(task: int, rollouts: tuple[int, ...]) -> None:
    if all(map(lt, rollouts, rollouts[1:])):
        return
    before, after = next(pair for pair in pairwise(rollouts) if pair[0] >= pair[1])
    if before == after:
        raise InputError(
            f"rollout {RolloutKey(task, after)} is there twice: one server's results hold each rollout once; aggregate "
            "overlapping shards separately, or renumber their tasks"
        )
    raise InputError(f"rollout {RolloutKey(task, after)} comes after {RolloutKey(task, before)}: rows are sorted")
