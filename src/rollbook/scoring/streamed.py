"""The metrics of one server's results, from rows that come one after the other: many more than memory holds.

Rules:
* What comes out is what `compute_aggregate_metrics` makes of the same rows without hooks, key for key and value for
  value; the entries of tasks go out as each task ends.
* Rows come in (task, rollout) order; of a rollout there is one.
* Of a row nothing is kept but its numbers, eight bytes each.

Source: collection.md §6.4.
"""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from itertools import chain, compress, count, pairwise
from operator import add, itemgetter, lt, ne
from typing import Final, NoReturn

import msgspec

from rollbook.errors import InputError
from rollbook.records.identity import RolloutKey
from rollbook.records.json_values import JsonObject
from rollbook.scoring.across_repeats import across_repeats
from rollbook.scoring.entry_layout import COMPACT, Layout
from rollbook.scoring.performance import PerfColumns
from rollbook.scoring.repeats import entries_of
from rollbook.scoring.streamed_metrics import Metrics, default_key_metrics
from rollbook.scoring.streamed_part import Part, PartCounts
from rollbook.scoring.streamed_repeats import Repeats, described
from rollbook.scoring.streamed_shape import HEAD, Flat, Names, RowShape, Text, relaid
from rollbook.scoring.streamed_tasks import TaskEntries
from rollbook.scoring.task_figures import Column

Sink = Callable[[bytes], object]
"""Takes the entry of one task, a JSON object; tasks come in order."""
Expected = Callable[[int], int | None]
"""How many rollouts of a task were planned; tasks are asked for in order, each before its entry goes out."""
Shown = Callable[[int, Text], msgspec.Raw]
"""What an entry shows of a task, by its number and the first of its rows that measure."""
_BEFORE_ALL: Final = (-1, -1)
_MOST_ROWS: Final = 512
_MOST_CELLS: Final = 1 << 15
_MOST_HELD: Final = 1 << 18
"""Rows that wait, as numbers and with what is shown of their tasks, so that many tasks are ended in each step."""
_TASK: Final = itemgetter(0)


def _unknown(task: int) -> int | None:  # noqa: ARG001  nothing is known of any task
    return None


class StreamedMetrics:
    """The metrics of rows that are added in (task, rollout) order.

    Each task's entry, laid out by `layout`, goes to `sink` some time after its last row was added. `expected` says how
    many rollouts of a task were planned; where it does not know, those at hand are taken for all. `shown` says what an
    entry shows of its task; without it, the first row that measures, light.
    """

    def __init__(
        self,
        sink: Sink,
        expected: Expected = _unknown,
        shown: Shown | None = None,
        layout: Layout = COMPACT,
        shape: RowShape | None = None,
    ) -> None:
        self._sink = sink
        self._expected = expected
        self._shown = shown
        self._layout = layout
        self._shape = shape or RowShape()
        self._names: Names = ()
        self._entries = TaskEntries((), layout)
        self._repeats = Repeats()
        self._perf = PerfColumns()
        self._masked_indices: set[int] = set()
        self._counts = _Counts()
        self._last = _BEFORE_ALL
        self._rows: list[Flat] = []
        self._most_rows = _MOST_ROWS
        self._firsts: list[Text] = []
        self._shown_last = -1
        self._held = 0

    def add(self, row: Text) -> None:
        """Take one row in: its JSON text, with or without its bulk.

        Raises:
            InputError: it names no rollout, or one that does not come after the one before it.
            msgspec.DecodeError, UnicodeDecodeError: it is no JSON object.

        """
        self.add_all((row,))

    def add_all(self, texts: Sequence[Text]) -> None:
        """Take rows in, as `add` does one: so many of them as may be held together."""
        read = self._shape.read_all(texts)
        if self._shape.names is not self._names:
            self._rename()
        if not read:
            return
        columns = list(zip(*read, strict=True))
        self._check_order(columns)
        self._note_firsts(columns, texts)
        self._rows += read
        if len(self._rows) > self._most_rows or self._held > _MOST_HELD:
            self._end_tasks()

    @property
    def lessons(self) -> int:
        """How often rows did not look as those before them."""
        return self._shape.changes

    def beside(self, sink: Sink) -> "StreamedMetrics":
        """Return metrics of rows that come later, which are read as those before them were; see `part`."""
        return StreamedMetrics(sink, self._expected, self._shown, self._layout, self._shape)

    def end_tasks(self) -> None:
        """Let the entries of all tasks go out: of none of them comes another row."""
        if self._rows:
            self._end_tasks(all_of_them=True)
        self._repeats.settle(self._names)

    def part(self) -> Part:
        """Return what the rows came to, for `take`; no row comes after this.

        Raises:
            ApartError: they cannot be put together with others.

        """
        self.end_tasks()
        counts = PartCounts(
            self._counts.all(), sorted(self._masked_indices), self._repeats.rows, self._perf.rows, self._perf.found
        )
        return counts, chain(self._repeats.parts(), self._perf.parts())

    def take(self, part: Part) -> None:
        """Take in what the rows that come after these ones came to."""
        counts, columns = part
        self.end_tasks()
        self._counts.add(counts.counts)
        self._masked_indices.update(counts.masked_indices)
        self._repeats.take_rows(counts.rows)
        self._perf.rows += counts.perf_rows
        self._perf.found += counts.perf_found
        for column in columns:
            if column.repeat is None:
                self._perf.take(column)
            else:
                self._repeats.take(column)

    def _rename(self) -> None:
        """Lay the rows that wait as the next ones are."""
        before, self._names = self._names, self._shape.names
        self._repeats.settle(before)
        self._rows = [relaid(row, before, self._names) for row in self._rows]
        self._entries = TaskEntries(self._names, self._layout)
        self._most_rows = min(_MOST_ROWS, _MOST_CELLS // (HEAD + len(self._names)))

    def _check_order(self, columns: Sequence[Column]) -> None:
        keys = list(zip(columns[0], columns[1], strict=True))
        if not (self._last < keys[0] and all(map(lt, keys, keys[1:]))):
            _refuse_disorder([self._last, *keys])
        self._last = keys[-1]

    def _note_firsts(self, columns: Sequence[Column], texts: Sequence[Text]) -> None:
        """Keep of each task what is shown: of its first row that measures."""
        tasks, at = columns[0], list(range(len(texts)))
        if any(columns[2]):
            measured = [not masked for masked in columns[2]]
            tasks, at = tuple(compress(tasks, measured)), list(compress(at, measured))
        if not tasks:
            return
        firsts = [texts[one] for one in compress(at, map(ne, tasks, chain((self._shown_last,), tasks)))]
        self._shown_last = tasks[-1]
        self._firsts += map(self._shape.sample, firsts) if self._shown is None else firsts
        self._held += sum(map(len, self._firsts[len(self._firsts) - len(firsts) :]))

    def _end_tasks(self, *, all_of_them: bool = False) -> None:
        """Take in the rows that wait, but for those of the last task, which may go on."""
        rows, last = self._rows, self._rows[-1][0]
        if not all_of_them and rows[0][0] == last:
            return
        first_open = len(rows) if all_of_them else bisect_left(rows, last, key=_TASK)
        self._rows = rows[first_open:]
        columns = list(zip(*rows[:first_open], strict=True))
        self._add_perfs(columns[3])
        if any(columns[2]):
            measured = [not masked for masked in columns[2]]
            self._note_masked(columns, measured)
            columns = [tuple(compress(column, measured)) for column in columns]
        if columns[0]:
            self._end_measured(columns)

    def _end_measured(self, columns: Sequence[Column]) -> None:
        """Take in the rows of whole tasks, all of which measure."""
        tasks = columns[0]
        self._repeats.add(columns, self._names)
        starts = [0, *compress(count(1), map(ne, tasks, tasks[1:]))]
        self._counts.measured += len(tasks)
        self._counts.measured_tasks += len(starts)
        found = [tasks[start] for start in starts]
        shown, self._firsts = self._firsts[: len(starts)], self._firsts[len(starts) :]
        self._held = sum(map(len, self._firsts))
        samples = list(map(self._shown, found, shown)) if self._shown is not None else shown
        planned = list(map(self._expected, found))
        for entry in self._entries.entries(columns, starts, samples, planned):
            self._sink(entry)

    def _note_masked(self, columns: Sequence[Column], measured: Sequence[bool]) -> None:
        masked = [not one for one in measured]
        self._masked_indices.update(compress(columns[1], masked))
        self._counts.masked += sum(masked)
        self._counts.masked_tasks += len(set(columns[0])) - len(set(compress(columns[0], measured)))

    def _add_perfs(self, perfs: tuple[object, ...]) -> None:
        if perfs.count(None) == len(perfs):
            self._perf.rows += len(perfs)
        else:
            for perf in perfs:
                self._perf.add(perf)

    def end(self) -> Metrics:
        """Return the metrics, without the entries of tasks, which the sink has by then; no row comes after this."""
        self.end_tasks()
        coverage, perf = self._counts.coverage(), self._perf.summary()
        if not self._counts.measured:
            return Metrics(agent_metrics=dict(coverage), key_metrics=dict(coverage), perf_summary=perf)
        columns = self._repeats.columns()
        repeats = entries_of(columns, self._counts.measured_tasks) if len(columns) > 1 else []
        agent_metrics = described(columns) | across_repeats(repeats)
        agent_metrics["num_repeats"] = len(self._repeats.indices() | self._masked_indices)
        agent_metrics |= coverage
        return Metrics(
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

    def all(self) -> tuple[int, int, int, int]:
        """Return them."""
        return self.measured, self.masked, self.measured_tasks, self.masked_tasks

    def add(self, others: tuple[int, int, int, int]) -> None:
        """Add those of other tasks."""
        self.measured, self.masked, self.measured_tasks, self.masked_tasks = map(add, self.all(), others)

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


def _refuse_disorder(keys: Sequence[tuple[int, int]]) -> NoReturn:
    before, after = next(pair for pair in pairwise(keys) if pair[0] >= pair[1])
    if before[0] > after[0]:
        raise InputError(f"rollout {RolloutKey(*after)} comes after task {before[0]}: rows are sorted by task")
    if before == after:
        raise InputError(
            f"rollout {RolloutKey(*after)} is there twice: one server's results hold each rollout once; aggregate "
            "overlapping shards separately, or renumber their tasks"
        )
    raise InputError(f"rollout {RolloutKey(*after)} comes after {RolloutKey(*before)}: rows are sorted")
