"""Every record of a run, as columns: some forty bytes each, whatever its row holds.

Rules:
* What many records share (an outcome without its text, an agent, a server, a run) is kept once and numbered.
* A record comes back as it went in, but for what a person reads of it, which stays on disk at its place.

Source: collection.md §5.4.1, §19.
"""

import math
from array import array
from collections.abc import Iterator, MutableSequence
from dataclasses import dataclass, field, replace
from typing import Final

from rollbook.records.identity import RolloutKey
from rollbook.records.outcome import Masked, Outcome, Scored, without_text
from rollbook.records.place import File, Place
from rollbook.records.record import Record
from rollbook.records.shared import Shared

NO_ROW: Final = -1
_NO_FILE: Final = 2
_FILES: Final = (File.RESULTS, File.FAILURES)
_FILE_NUMBERS: Final = {file: number for number, file in enumerate(_FILES)}
_SCORED: Final = Scored(0.0)
_MASKED: Final = Masked(None)


@dataclass(slots=True)
class RecordTable:
    """Records by row number; `before` chains the rows of one rollout, the latest first."""

    _attempt: MutableSequence[int] = field(default_factory=lambda: array("i"))
    _shape: MutableSequence[int] = field(default_factory=lambda: array("i"))
    _origin: MutableSequence[int] = field(default_factory=lambda: array("i"))
    _reward: MutableSequence[float] = field(default_factory=lambda: array("d"))
    _file: MutableSequence[int] = field(default_factory=lambda: array("B"))
    _offset: MutableSequence[int] = field(default_factory=lambda: array("q"))
    _length: MutableSequence[int] = field(default_factory=lambda: array("I"))
    _line: MutableSequence[int] = field(default_factory=lambda: array("I"))
    _before: MutableSequence[int] = field(default_factory=lambda: array("i"))
    _shapes: Shared[Outcome] = field(default_factory=Shared)
    _origins: Shared[tuple[str | None, str | None, str | None]] = field(default_factory=Shared)

    def __len__(self) -> int:
        """Return how many records there are."""
        return len(self._attempt)

    def append(self, record: Record, attempt: int, before: int) -> int:
        """Keep `record` as `attempt` of its rollout, whose row before this one is `before`; return its row."""
        shape, reward = _split(record.outcome)
        self._attempt.append(attempt)
        self._shape.append(self._shapes.number(shape))
        self._origin.append(self._origins.number((record.run_id, record.agent, record.server)))
        self._reward.append(reward)
        self._before.append(before)
        self._keep_place(record.place)
        return len(self._attempt) - 1

    def _keep_place(self, place: Place | None) -> None:
        if place is None:
            place = Place(File.RESULTS, 0, 0, 0)
            self._file.append(_NO_FILE)
        else:
            self._file.append(_FILE_NUMBERS[place.file])
        self._offset.append(place.offset)
        self._length.append(min(place.length, 0xFFFFFFFF))
        self._line.append(min(place.line, 0xFFFFFFFF))

    def record(self, row: int, key: RolloutKey) -> Record:
        """Return the record of `row`, whose rollout is `key`."""
        run_id, agent, server = self._origins[self._origin[row]]
        return Record(key, self._attempt[row], self.outcome(row), run_id, agent, server, self.place(row))

    def outcome(self, row: int) -> Outcome:
        """Return how the attempt of `row` ended."""
        shape = self._shapes[self._shape[row]]
        if shape is _SCORED or shape == _SCORED:
            return Scored(self._reward[row])
        if isinstance(shape, Masked):
            reward = self._reward[row]
            return Masked(None if math.isnan(reward) else reward)
        return shape

    def shape(self, row: int) -> Outcome:
        """Return the outcome of `row` without its reward: enough to tell what kind of ending it is."""
        return self._shapes[self._shape[row]]

    def reward(self, row: int) -> float:
        """Return the reward of `row`; NaN where it has none."""
        return self._reward[row]

    def server(self, row: int) -> str | None:
        """Return the environment server that `row` names."""
        return self._origins[self._origin[row]][2]

    def shape_number(self, row: int) -> int:
        """Return which of the table's kinds of ending `row` is."""
        return self._shape[row]

    def attempt(self, row: int) -> int:
        """Return the attempt of `row`."""
        return self._attempt[row]

    def run_id(self, row: int) -> str | None:
        """Return the run that `row` names."""
        return self._origins[self._origin[row]][0]

    def place(self, row: int) -> Place | None:
        """Return where `row` lies on disk, if it does."""
        if self._file[row] == _NO_FILE:
            return None
        return Place(_FILES[self._file[row]], self._offset[row], self._length[row], self._line[row])

    def chain(self, row: int) -> Iterator[int]:
        """Yield `row` and the rows of the same rollout before it."""
        while row != NO_ROW:
            yield row
            row = self._before[row]


def _split(outcome: Outcome) -> tuple[Outcome, float]:
    match outcome:
        case Scored(reward):
            return _SCORED, reward
        case Masked(reward):
            return _MASKED, math.nan if reward is None else reward
        case _:
            return without_text(outcome), math.nan


def renumbered(record: Record, attempt: int) -> Record:
    """Return `record` as another attempt of its rollout."""
    return record if record.attempt == attempt else replace(record, attempt=attempt)
