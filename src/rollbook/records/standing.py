"""Where each rollout stands after its records: the one fold, "the latest execution stands first".

Rules:
* Readers ask this fold; none of them looks at a record's order or markers itself.
* A never-started row and evidence never supersede; an interrupted attempt hides older failures.
* With the same attempt number, or where no run id says which attempt is which, a result wins over a failure;
  with different numbers the highest attempt that has an outcome stands, in whichever file it lies.

Source: collection.md §4.11, §17.1, §21.1.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from rollbook.records.identity import RolloutKey
from rollbook.records.outcome import (
    Evidence,
    Failed,
    Interrupted,
    Masked,
    NeverStarted,
    Outcome,
    Result,
    Scored,
    Unscored,
)
from rollbook.records.record import Record


@dataclass(frozen=True, slots=True)
class Coverage:
    """What share of the plan has which standing.

    `planned = scored + masked + unscored + failed + interrupted + never_started + in_flight + untouched` always holds;
    `failed_by_class` splits `failed` by the class of the failure that stands.
    """

    planned: int
    scored: int = 0
    masked: int = 0
    unscored: int = 0
    failed: int = 0
    interrupted: int = 0
    never_started: int = 0
    in_flight: int = 0
    untouched: int = 0
    failed_by_class: Mapping[str, int] = field(default_factory=dict)

    @property
    def settled_with_result(self) -> int:
        """Rollouts that left a result, whatever it says."""
        return self.scored + self.masked + self.unscored

    @property
    def law_holds(self) -> bool:
        """Whether every planned rollout is counted exactly once."""
        parts = (self.failed, self.interrupted, self.never_started, self.in_flight, self.untouched)
        return min(parts) >= 0 and self.planned == self.settled_with_result + sum(parts)


def supersedes(new: Record, current: Record | None) -> bool:
    """Whether `new`, read after `current`, decides where the rollout stands."""
    if isinstance(new.outcome, NeverStarted | Evidence):
        return current is None
    if current is None or isinstance(current.outcome, NeverStarted | Evidence):
        return True
    numbered = new.run_id is not None and current.run_id is not None
    if numbered and new.attempt != current.attempt:
        return new.attempt > current.attempt
    return isinstance(new.outcome, Result) or not isinstance(current.outcome, Result)


@dataclass(slots=True)
class Standings:
    """The fold over a run's records, in the order in which they were written."""

    _current: dict[RolloutKey, Record] = field(default_factory=dict)
    _in_flight: set[RolloutKey] = field(default_factory=set)
    _failures: Counter[RolloutKey] = field(default_factory=Counter)

    def add(self, record: Record) -> None:
        """Fold one record."""
        if supersedes(record, self._current.get(record.key)):
            self._current[record.key] = record
        if isinstance(record.outcome, Failed):
            self._failures[record.key] += 1
        self._in_flight.discard(record.key)

    def started(self, key: RolloutKey) -> None:
        """Note that an attempt of `key` is in flight."""
        self._in_flight.add(key)

    def of(self, key: RolloutKey) -> Record | None:
        """Return the record that decides where `key` stands, or None when nothing was written about it."""
        return self._current.get(key)

    def failures_of(self, key: RolloutKey) -> int:
        """Return how many failed attempts of `key` were saved; omitted rollouts and evidence are none."""
        return self._failures.get(key, 0)

    def has_result(self, key: RolloutKey) -> bool:
        """Whether a result stands for `key`."""
        record = self._current.get(key)
        return record is not None and isinstance(record.outcome, Result)

    def __iter__(self) -> Iterator[Record]:
        """Yield the records that stand."""
        return iter(self._current.values())

    def coverage(self, planned: int) -> Coverage:
        """Count the standings of `planned` rollouts."""
        parts: Counter[str] = Counter()
        classes: Counter[str] = Counter()
        for record in self._current.values():
            if record.key in self._in_flight:
                continue
            parts[_part(record.outcome)] += 1
            if isinstance(record.outcome, Failed):
                classes[record.outcome.failure_class] += 1
        parts["in_flight"] = len(self._in_flight)
        untouched = planned - sum(count for part, count in parts.items() if part != "untouched")
        return Coverage(
            planned=planned,
            scored=parts["scored"],
            masked=parts["masked"],
            unscored=parts["unscored"],
            failed=parts["failed"],
            interrupted=parts["interrupted"],
            never_started=parts["never_started"],
            in_flight=parts["in_flight"],
            untouched=untouched,
            failed_by_class=dict(sorted(classes.items())),
        )


_PARTS: Final[Mapping[type, str]] = {
    Scored: "scored",
    Masked: "masked",
    Unscored: "unscored",
    Failed: "failed",
    Interrupted: "interrupted",
    NeverStarted: "never_started",
    Evidence: "untouched",
}


def _part(outcome: Outcome) -> str:
    return _PARTS[type(outcome)]
