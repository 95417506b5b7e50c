"""Which attempt numbers of each rollout were handed out, and which of them ended.

Rules:
* One bit an attempt: 16 numbers of a rollout fit into a column, the few rollouts with more are kept apart.
* A number that was handed out, or that a record carries, is never handed out again.

Source: collection.md §5.4.2, §5.4.4.
"""

from array import array
from collections import Counter
from collections.abc import Iterator
from typing import Final

import msgspec

ATTEMPT_BITS: Final = 16
MOST_SESSIONS: Final = 0xFFFF


class NumberSets(msgspec.Struct):
    """One set of attempt numbers per rollout: `bits` of each, and in `wide` what has no room there."""

    bits: "array[int]" = msgspec.field(default_factory=lambda: array("H"))
    wide: dict[int, int] = msgspec.field(default_factory=dict)

    def of(self, seat: int) -> int:
        """Return the set of the rollout at `seat`, as one number."""
        return self.bits[seat] | self.wide[seat] if seat in self.wide else self.bits[seat]

    def add(self, seat: int, attempt: int) -> None:
        """Put `attempt` into the set of the rollout at `seat`."""
        if attempt < ATTEMPT_BITS:
            self.bits[seat] |= 1 << attempt
        else:
            self.wide[seat] = self.wide.get(seat, 0) | 1 << attempt


class Attempts(msgspec.Struct):
    """The numbers of every rollout, by the rollout's seat."""

    handed_out: NumberSets = msgspec.field(default_factory=NumberSets)
    ended: NumberSets = msgspec.field(default_factory=NumberSets)
    sessions: "array[int]" = msgspec.field(default_factory=lambda: array("H"))
    _cut: dict[int, int] = msgspec.field(default_factory=dict)

    def grow(self, count: int = 1) -> None:
        """Make room for `count` more rollouts."""
        self.handed_out.bits.frombytes(bytes(2 * count))
        self.ended.bits.frombytes(bytes(2 * count))
        self.sessions.frombytes(bytes(2 * count))

    def reserve(self, seat: int, attempt: int, session: int) -> None:
        """Note that `attempt` was handed out in `session`."""
        self.handed_out.add(seat, attempt)
        self.sessions[seat] = min(session, MOST_SESSIONS)

    def end(self, seat: int, attempt: int) -> None:
        """Note that `attempt` ended, or never ran."""
        self.ended.add(seat, attempt)

    def cut(self, seat: int, attempt: int) -> None:
        """Note that `attempt` was ended by the process that had sent it."""
        self._cut[seat] = self._cut.get(seat, 0) | 1 << attempt

    def is_handed_out(self, seat: int, attempt: int) -> bool:
        """Whether `attempt` was handed out."""
        return bool(self.handed_out.of(seat) >> attempt & 1)

    def has_ended(self, seat: int, attempt: int) -> bool:
        """Whether `attempt` ended."""
        return bool(self.ended.of(seat) >> attempt & 1)

    def next_number(self, seat: int) -> int:
        """Return the number after every one that was handed out or carried by a record."""
        return (self.handed_out.of(seat) | self.ended.of(seat)).bit_length()

    def lowest_unused(self, seat: int) -> int:
        """Return the lowest number that was neither handed out nor carried by a record."""
        used = self.handed_out.of(seat) | self.ended.of(seat)
        return (~used & used + 1).bit_length() - 1

    def open_attempt(self, seat: int) -> int | None:
        """Return the latest attempt that was handed out and did not end."""
        unended = self.handed_out.of(seat) & ~self.ended.of(seat)
        return unended.bit_length() - 1 if unended else None

    def lost(self, seat: int) -> Iterator[int]:
        """Yield the attempts that did not end and that nobody cut, in order."""
        bits = self.handed_out.of(seat) & ~self.ended.of(seat) & ~self._cut.get(seat, 0)
        while bits:
            lowest = bits & -bits
            yield lowest.bit_length() - 1
            bits ^= lowest

    def was_cut(self, seat: int, attempt: int) -> bool:
        """Whether `attempt` was ended by the process that had sent it."""
        return bool(self._cut.get(seat, 0) >> attempt & 1)

    def session(self, seat: int) -> int:
        """Return the session in which the rollout's latest number was handed out."""
        return self.sessions[seat]

    def total(self) -> int:
        """Return how many numbers were handed out to all rollouts together."""
        wide = sum(bits.bit_count() for bits in self.handed_out.wide.values())
        return wide + sum(count * bits.bit_count() for bits, count in Counter(self.handed_out.bits).items())

    def repeated(self) -> int:
        """Return how many rollouts have had more than one attempt."""
        wide = {*self.handed_out.wide, *self.ended.wide}
        told = Counter(zip(self.handed_out.bits, self.ended.bits, strict=True))
        plain = sum(count for (out, over), count in told.items() if out | over > 1)
        return plain + sum(self.handed_out.bits[seat] | self.ended.bits[seat] <= 1 for seat in wide)
