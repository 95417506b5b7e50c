"""Every record of a run, as columns: some forty bytes each, whatever its row holds.

Rules:
* What many records share (an outcome without its text, an agent, a server, a run) is kept once and numbered.
* A record comes back as it went in, but for what a person reads of it, which stays on disk at its place.

Source: collection.md §5.4.1, §19.
"""

import math
from array import array
from collections import Counter
from collections.abc import Iterator
from typing import Final

import msgspec
from msgspec.structs import replace

from rollbook.records.identity import RolloutKey
from rollbook.records.outcome import Failed, Masked, Outcome, Scored, without_text
from rollbook.records.place import File, Place
from rollbook.records.record import Record
from rollbook.records.shared import Shared

NO_ROW: Final = -1
SCORED_KIND: Final = 0
NO_FILE: Final = 2
_LARGEST: Final = 0xFFFFFFFF
_FILES: Final = (File.RESULTS, File.FAILURES)
FILE_NUMBERS: Final = {file: number for number, file in enumerate(_FILES)}
SCORED: Final = Scored(0.0)
_MASKED: Final = Masked(None)


class RecordTable(msgspec.Struct):
    """Records by row number; `before` chains the rows of those rollouts that have several, the latest first."""

    attempts: "array[int]" = msgspec.field(default_factory=lambda: array("i"))
    kinds: "array[int]" = msgspec.field(default_factory=lambda: array("i"))
    origins: "array[int]" = msgspec.field(default_factory=lambda: array("i"))
    rewards: "array[float]" = msgspec.field(default_factory=lambda: array("d"))
    files: "array[int]" = msgspec.field(default_factory=lambda: array("B"))
    offsets: "array[int]" = msgspec.field(default_factory=lambda: array("q"))
    lengths: "array[int]" = msgspec.field(default_factory=lambda: array("I"))
    lines: "array[int]" = msgspec.field(default_factory=lambda: array("I"))
    before: dict[int, int] = msgspec.field(default_factory=dict)
    outcomes: Shared[Outcome] = msgspec.field(default_factory=lambda: Shared(SCORED))
    sources: Shared[tuple[str | None, str | None, str | None]] = msgspec.field(default_factory=Shared)

    def __len__(self) -> int:
        """Return how many records there are."""
        return len(self.attempts)

    def append(self, record: Record, attempt: int, before: int) -> int:
        """Keep `record` as `attempt` of its rollout, whose row before this one is `before`; return its row."""
        shape, reward = _split(record.outcome)
        self.attempts.append(attempt)
        self.kinds.append(self.outcomes.number(shape))
        self.origins.append(self.sources.number((record.run_id, record.agent, record.server)))
        self.rewards.append(reward)
        if before != NO_ROW:
            self.before[len(self.attempts) - 1] = before
        self._keep_place(record.place)
        return len(self.attempts) - 1

    def _keep_place(self, place: Place | None) -> None:
        if place is None:
            place = Place(File.RESULTS, 0, 0, 0)
            self.files.append(NO_FILE)
        else:
            self.files.append(FILE_NUMBERS[place.file])
        self.offsets.append(place.offset)
        self.lengths.append(min(place.length, _LARGEST))
        self.lines.append(min(place.line, _LARGEST))

    def record(self, row: int, key: RolloutKey) -> Record:
        """Return the record of `row`, whose rollout is `key`."""
        run_id, agent, server = self.sources[self.origins[row]]
        return Record(key, self.attempts[row], self.outcome(row), run_id, agent, server, self.place(row))

    def outcome(self, row: int) -> Outcome:
        """Return how the attempt of `row` ended."""
        shape = self.outcomes[self.kinds[row]]
        if shape is SCORED or shape == SCORED:
            return Scored(self.rewards[row])
        if isinstance(shape, Masked):
            reward = self.rewards[row]
            return Masked(None if math.isnan(reward) else reward)
        if isinstance(shape, Failed) and not math.isnan(self.rewards[row]):
            return replace(shape, reward=self.rewards[row])
        return shape

    def shape(self, row: int) -> Outcome:
        """Return the outcome of `row` without its reward: enough to tell what kind of ending it is."""
        return self.outcomes[self.kinds[row]]

    def reward(self, row: int) -> float:
        """Return the reward of `row`; NaN where it has none."""
        return self.rewards[row]

    def server(self, row: int) -> str | None:
        """Return the environment server that `row` names."""
        return self.sources[self.origins[row]][2]

    def shape_number(self, row: int) -> int:
        """Return which of the table's kinds of ending `row` is."""
        return self.kinds[row]

    def attempt(self, row: int) -> int:
        """Return the attempt of `row`."""
        return self.attempts[row]

    def run_id(self, row: int) -> str | None:
        """Return the run that `row` names."""
        return self.sources[self.origins[row]][0]

    def place(self, row: int) -> Place | None:
        """Return where `row` lies on disk, if it does."""
        if self.files[row] == NO_FILE:
            return None
        return Place(_FILES[self.files[row]], self.offsets[row], self.lengths[row], self.lines[row])

    def lies_at(self, row: int, place: Place) -> None:
        """Note where `row` lies, whose place was not known."""
        self.offsets[row] = place.offset
        self.lengths[row], self.lines[row] = min(place.length, _LARGEST), min(place.line, _LARGEST)
        self.files[row] = FILE_NUMBERS[place.file]

    def run_ids(self) -> Counter[str | None]:
        """Return how many rows name which run."""
        counts: Counter[str | None] = Counter()
        for source, count in Counter(self.origins).items():
            counts[self.sources[source][0]] += count
        return counts

    def chain(self, row: int) -> Iterator[int]:
        """Yield `row` and the rows of the same rollout before it."""
        while row != NO_ROW:
            yield row
            row = self.before.get(row, NO_ROW)


def _split(outcome: Outcome) -> tuple[Outcome, float]:
    match outcome:
        case Scored(reward):
            return SCORED, reward
        case Masked(reward):
            return _MASKED, math.nan if reward is None else reward
        case Failed(reward=float(reward)):
            return without_text(outcome), reward
        case _:
            return without_text(outcome), math.nan


def renumbered(record: Record, attempt: int) -> Record:
    """Return `record` as another attempt of its rollout."""
    return record if record.attempt == attempt else replace(record, attempt=attempt)
