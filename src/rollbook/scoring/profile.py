"""The profile of one label: its tasks one by one, its repeats, and all of it, from rollouts that come in order.

Rules:
* Masked results and exactly their planned rollouts are left out; what is missing otherwise stays planned.
* A task is told twice: once its rollouts were all seen, as rates, and, where any of them measures, as an entry.
* Nothing of a row is kept but its numbers.

Source: collection.md §6.4 (3 to 7), §9.4.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Generic, TypeVar

import msgspec

from rollbook.scoring.aggregate import AggregateMetrics
from rollbook.scoring.profile_rates import TaskRates
from rollbook.scoring.streamed import StreamedMetrics
from rollbook.scoring.streamed_shape import Text, sample_of

_Origin = TypeVar("_Origin")


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

    @property
    def found(self) -> int:
        """How many rollouts have a result, or count as zero."""
        return self.measured + self.masked

    @property
    def rates(self) -> TaskRates:
        """What its rollouts achieved."""
        return TaskRates(self.rewards, self.planned - self.masked)


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
        self._shown: Task[_Origin] | None = None
        self._sample = sample
        self._metrics = StreamedMetrics(self._take_entry, self._expected, self._of_task if sample else None)

    def add(
        self, task: int, origin: _Origin, kind: Kind, reward: float = 0.0, row: Text = b"", *, planned: bool = True
    ) -> None:
        """Take one rollout in: what stands of it, its reward if it was scored, and its row if it measures.

        Raises:
            InputError: it does not come after the one before it.
            msgspec.DecodeError, UnicodeDecodeError: the row is no JSON object.

        """
        now = self._task
        if now is None or task != now.index:
            self.end_task()
            now = self._task = Task(task, origin)
        now.planned += planned
        if kind is Kind.NO_RESULT:
            return
        self._metrics.add(row)
        if kind is Kind.MASKED:
            now.masked += 1
            return
        now.measured += 1
        if kind is not Kind.UNSCORED:
            now.rewards.append(reward)
            now.zeros += kind is Kind.ZERO

    def end(self) -> AggregateMetrics:
        """Return the metrics of the label, without entries; no rollout comes after this."""
        self.end_task()
        return self._metrics.end()

    def end_task(self) -> None:
        """Tell of the task whose rollouts were added last, if it was not told of."""
        task, self._task = self._task, None
        if task is None:
            return
        self._on_task(task)
        if task.found:
            self._shown = task

    def _expected(self, task: int) -> int | None:
        """Return how many rollouts were planned of the task whose entry is made."""
        shown = self._shown
        return None if shown is None or shown.index != task else max(shown.planned - shown.masked, shown.measured)

    def _of_task(self, _: int, first: Text) -> msgspec.Raw:
        """Return what the entry that is made shows of its task."""
        shown = None if self._sample is None or self._shown is None else self._sample(self._shown)
        return sample_of(first) if shown is None else shown

    def _take_entry(self, entry: bytes) -> None:
        assert self._shown is not None  # noqa: S101  an entry is made of rows that were added
        self._on_entry(self._shown, entry)
