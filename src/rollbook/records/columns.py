"""The rollouts of a run, as columns: which seat each has, whether the plan holds it, and what stands of it.

Rules:
* A rollout has one seat, in the order in which rollouts were first named.
* A key is packed into one number, so that a million of them cost no objects but numbers.
"""

from array import array
from typing import Final

import msgspec

from rollbook.records.attempts import Attempts
from rollbook.records.identity import RolloutKey
from rollbook.records.seats import STRIDE, Seats
from rollbook.records.shared import Shared
from rollbook.records.table import NO_ROW

PLANNED: Final = 1
LOW: Final = 0xFFFFFFFF
_NOTHING: Final = array("i", [NO_ROW]).tobytes()


class RolloutColumns(msgspec.Struct):
    """`row`: what stands; `last`: the latest row; `spent`: failures that count; `group`: who the plan gave it to."""

    seats: Seats = msgspec.field(default_factory=Seats)
    row: "array[int]" = msgspec.field(default_factory=lambda: array("i"))
    last: "array[int]" = msgspec.field(default_factory=lambda: array("i"))
    spent: "array[int]" = msgspec.field(default_factory=lambda: array("H"))
    flags: "array[int]" = msgspec.field(default_factory=lambda: array("B"))
    group: "array[int]" = msgspec.field(default_factory=lambda: array("I"))
    names: Shared[tuple[str | None, str | None]] = msgspec.field(default_factory=lambda: Shared((None, None)))
    attempts: Attempts = msgspec.field(default_factory=Attempts)

    def seat(self, packed: int) -> int:
        """Return the seat of a rollout, a new one when it was not named before."""
        found = self.seats.add(packed)
        if found == len(self.row):
            self.grow(1)
        return found

    def grow(self, count: int) -> None:
        """Make room for `count` more rollouts."""
        self.row.frombytes(_NOTHING * count)
        self.last.frombytes(_NOTHING * count)
        self.spent.frombytes(bytes(2 * count))
        self.flags.frombytes(bytes(count))
        self.group.frombytes(bytes(4 * count))
        self.attempts.grow(count)


def packed_key(key: RolloutKey) -> int:
    """Return a key as one number."""
    return packed(key.task, key.rollout)


def packed(task: int, rollout: int) -> int:
    """Return a task and a rollout as one number whose low bits differ where either does, as a hash table likes it."""
    return task << 32 | (task * STRIDE + rollout) & LOW


def unpacked_key(number: int) -> RolloutKey:
    """Return the key that a number stands for."""
    task = number >> 32
    return RolloutKey(task, (number - task * STRIDE) & LOW)
