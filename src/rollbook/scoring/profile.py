"""The profile of one label: its tasks one by one, its repeats, and all of it, from rollouts that come in order.

Rules:
* Masked results and exactly their planned rollouts are left out; what is missing otherwise stays planned.
* A task is told twice: once its rollouts were all seen, as rates, and, where any of them measures, as an entry, later.
* Nothing of a row is kept but its numbers, once some rows were read together.

Source: collection.md §6.4 (3 to 7), §9.4.
"""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, Generic, TypeVar

import msgspec

from rollbook.records.reading import UNREADABLE
from rollbook.scoring.profile_rates import TaskRates
from rollbook.scoring.streamed import StreamedMetrics
from rollbook.scoring.streamed_metrics import Metrics
from rollbook.scoring.streamed_shape import RowShape, Text, sample_of

_Origin = TypeVar("_Origin")
_HELD: Final = 1 << 18
"""Bytes of rows that wait to be read together."""


class UnreadableRowError(Exception):
    """A row that is no JSON object: where it is from, its task, and what was wrong."""

    def __init__(self, origin: object, task: int, error: Exception) -> None:
        super().__init__(str(error))
        self.origin = origin
        self.task = task


class Kind(Enum):
    """What stands of a rollout, as far as a profile asks; a zero is a failure that its producer marks as a score."""

    SCORED = 0
    UNSCORED = 1
    MASKED = 2
    NO_RESULT = 3
    ZERO = 4


@dataclass(slots=True)
class Task(Generic[_Origin]):
    """One task's rollouts: their rewards, how many were planned, measure and were masked, and where they are from.

    `zeros` of those that measure have no result: they failed, and their producer marks that as a score.
    """

    index: int
    origin: _Origin
    rewards: list[float] = field(default_factory=list)
    planned: int = 0
    measured: int = 0
    masked: int = 0
    zeros: int = 0
    _rates: TaskRates | None = None

    @property
    def found(self) -> int:
        """How many rollouts have a result, or count as zero."""
        return self.measured + self.masked

    @property
    def rates(self) -> TaskRates:
        """What its rollouts achieved, once all were seen."""
        if self._rates is None:
            self._rates = TaskRates(self.rewards, self.planned - self.masked)
        return self._rates


class LabelProfile(Generic[_Origin]):
    """The profile of one label's rollouts, which are added by task and repeat.

    `on_task` is told of each task, `on_entry` of the entry of each that measures: a JSON object, compact. `sample`
    gives what an entry shows of a task; where it gives nothing, the first row that measures is shown, light.
    """

    def __init__(
        self,
        on_task: Callable[[Task[_Origin]], object],
        on_entry: Callable[[Task[_Origin], bytes], object],
        sample: Callable[[Task[_Origin]], msgspec.Raw | None] | None = None,
    ) -> None:
        self._on_task = on_task
        self._on_entry = on_entry
        self._task: Task[_Origin] | None = None
        self._sample = sample
        self._told: dict[int, Task[_Origin]] = {}
        self._asked: deque[Task[_Origin]] = deque()
        self._rows: list[Text] = []
        self._origins: list[tuple[_Origin, int]] = []
        self._left = _HELD
        self._metrics = StreamedMetrics(self._take_entry, self._expected, self._of_task if sample else None)

    def add(
        self, task: int, origin: _Origin, kind: Kind, reward: float = 0.0, row: Text = b"", *, planned: bool = True
    ) -> None:
        """Take one rollout in: what stands of it, its reward if it was scored, and its row if it measures.

        Raises:
            InputError: one does not come after the one before it.
            UnreadableRowError: a row that was added is no JSON object.

        """
        now = self._at(task, origin)
        now.planned += planned
        if kind is Kind.NO_RESULT:
            return
        self._rows.append(row)
        self._origins.append((origin, task))
        self._left -= len(row)
        if kind is Kind.MASKED:
            now.masked += 1
        else:
            now.measured += 1
            if kind is not Kind.UNSCORED:
                now.rewards.append(reward)
                now.zeros += kind is Kind.ZERO
        if self._left < 0:
            self._read()

    def add_scored(self, task: int, origin: _Origin, rewards: Sequence[float], rows: Sequence[Text]) -> None:
        """Take planned rollouts of one task in that were scored, as `add` does one.

        Raises:
            InputError, UnreadableRowError: as `add`.

        """
        now = self._at(task, origin)
        now.planned += len(rows)
        now.measured += len(rows)
        now.rewards += rewards
        self._rows += rows
        self._origins += [(origin, task)] * len(rows)
        self._left -= sum(map(len, rows))
        if self._left < 0:
            self._read()

    def _at(self, task: int, origin: _Origin) -> Task[_Origin]:
        """Return the task whose rollouts are added, which ends the one before it."""
        now = self._task
        if now is None or task != now.index:
            self.end_task()
            now = self._task = Task(task, origin)
        return now

    def _read(self) -> None:
        """Read the rows that wait."""
        rows, self._rows, origins, self._origins, self._left = self._rows, [], self._origins, [], _HELD
        try:
            self._metrics.add_all(rows)
        except UNREADABLE:
            for row, (origin, task) in zip(rows, origins, strict=True):
                try:
                    RowShape().read_all([row])
                except UNREADABLE as error:
                    raise UnreadableRowError(origin, task, error) from None
            raise

    def end(self) -> Metrics:
        """Return the metrics of the label, without entries; no rollout comes after this."""
        self.end_task()
        self._read()
        return self._metrics.end()

    def end_task(self) -> None:
        """Tell of the task whose rollouts were added last, if it was not told of."""
        task, self._task = self._task, None
        if task is None:
            return
        self._on_task(task)
        if task.measured:
            self._told[task.index] = task

    def _of_task(self, task: int, first: Text) -> msgspec.Raw:
        """Return what the entry that is made shows of its task."""
        told = self._told.get(task)
        shown = None if self._sample is None or told is None else self._sample(told)
        return sample_of(first) if shown is None else shown

    def _expected(self, task: int) -> int | None:
        """Return how many rollouts were planned of a task whose entry goes out soon."""
        told = self._told.pop(task)
        self._asked.append(told)
        return max(told.planned - told.masked, told.measured)

    def _take_entry(self, entry: bytes) -> None:
        self._on_entry(self._asked.popleft(), entry)
