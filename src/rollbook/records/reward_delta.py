"""What judging again changed: the rewards before and after, over the rollouts that were judged both times.

Rules:
* Both sides are asked of the fold; a rollout that has no reward on one side enters no mean, and is counted by how it
  stood and stands.
* The first changes are named, in plan order.

Source: collection.md §9.1.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

from rollbook.records.columns import RolloutColumns, unpacked_key
from rollbook.records.identity import RolloutKey
from rollbook.records.json_values import JsonObject
from rollbook.records.outcome import Failed, Scored
from rollbook.records.standing import Standings
from rollbook.records.table import NO_ROW

_NOTHING: Final = "nothing"
Holds = Callable[[RolloutKey], bool]
"""Whether the answer of a rollout was to be judged."""


@dataclass(frozen=True, slots=True)
class RewardChange:
    """One reward that is another one now."""

    key: RolloutKey
    old: float
    new: float


@dataclass(slots=True)
class RewardDelta:
    """Sums over the rollouts that were judged both times, the first changes, and how the others stood and stand."""

    judged_twice: int = 0
    old_sum: float = 0.0
    new_sum: float = 0.0
    up: int = 0
    down: int = 0
    first: list[RewardChange] = field(default_factory=list)
    moved: Counter[tuple[str, str]] = field(default_factory=Counter)
    gained: int = 0
    gained_sum: float = 0.0

    @property
    def old_mean(self) -> float | None:
        """The mean reward before."""
        return self.old_sum / self.judged_twice if self.judged_twice else None

    @property
    def new_mean(self) -> float | None:
        """The mean reward now, over the same rollouts."""
        return self.new_sum / self.judged_twice if self.judged_twice else None

    def as_json(self) -> JsonObject:
        """Return the same for programs."""
        old, new = self.old_mean, self.new_mean
        return {
            "judged_both_times": self.judged_twice,
            "old_mean": old,
            "new_mean": new,
            "difference": None if old is None or new is None else new - old,
            "changed": self.up + self.down,
            "up": self.up,
            "down": self.down,
            "first_changes": [
                {"task": one.key.task, "rollout": one.key.rollout, "old": one.old, "new": one.new} for one in self.first
            ],
            "newly_scored": self.gained,
            "newly_scored_mean": self.gained_sum / self.gained if self.gained else None,
            "moved": [{"from": old, "to": new, "count": n} for (old, new), n in sorted(self.moved.items())],
        }


def reward_delta(holds: Holds, before: Standings, after: Standings, shown: int) -> RewardDelta:
    """Return what changed between two folds of rollouts whose answers were judged; `shown` changes are named."""
    delta = RewardDelta()
    for key, old, new in _pairs(holds, before, after):
        if isinstance(old, float) and isinstance(new, float):
            delta.judged_twice += 1
            delta.old_sum += old
            delta.new_sum += new
            delta.up += new > old
            delta.down += new < old
            if new != old and len(delta.first) < shown:
                delta.first.append(RewardChange(key, old, new))
        elif isinstance(new, float):
            delta.gained += 1
            delta.gained_sum += new
        if isinstance(old, str) or isinstance(new, str):
            delta.moved[_word(old), _word(new)] += 1
    return delta


def _pairs(holds: Holds, before: Standings, after: Standings) -> Iterator[tuple[RolloutKey, float | str, float | str]]:
    """Yield each rollout whose answer was judged, with its reward or how it stands, before and after."""
    for number, seat in after.in_order():
        key = unpacked_key(number)
        if holds(key) and after.columns.row[seat] != NO_ROW:
            yield key, _found(before, before.columns, number), _of_row(after, after.columns.row[seat])


def _found(standings: Standings, columns: RolloutColumns, number: int) -> float | str:
    seat = columns.seats.get(number)
    return _NOTHING if seat is None else _of_row(standings, columns.row[seat])


def _of_row(standings: Standings, row: int) -> float | str:
    if row == NO_ROW:
        return _NOTHING
    shape = standings.table.shape(row)
    if isinstance(shape, Scored):
        return standings.table.reward(row)
    return f"failed ({shape.failure_class})" if isinstance(shape, Failed) else type(shape).__name__.lower()


def _word(found: float | str) -> str:
    return found if isinstance(found, str) else "scored"
