"""Which attempt numbers of each rollout were handed out, and which of them ended.

Rules:
* One bit an attempt: 64 numbers of a rollout fit into a column, the few rollouts with more are kept apart.
* A number that was handed out, or that a record carries, is never handed out again.

Source: collection.md §5.4.2, §5.4.4.
"""

from array import array
from collections.abc import Iterator, MutableSequence
from dataclasses import dataclass, field
from typing import Final

_BITS: Final = 64


@dataclass(slots=True)
class _Column:
    """One set of attempt numbers per rollout."""

    _bits: MutableSequence[int] = field(default_factory=lambda: array("Q"))
    _wide: dict[int, int] = field(default_factory=dict)

    def grow(self) -> None:
        self._bits.append(0)

    def of(self, slot: int) -> int:
        return self._bits[slot] | self._wide[slot] if slot in self._wide else self._bits[slot]

    def add(self, slot: int, attempt: int) -> None:
        if attempt < _BITS:
            self._bits[slot] |= 1 << attempt
        else:
            self._wide[slot] = self._wide.get(slot, 0) | 1 << attempt


@dataclass(slots=True)
class Attempts:
    """The numbers of every rollout, by the rollout's slot."""

    _reserved: _Column = field(default_factory=_Column)
    _ended: _Column = field(default_factory=_Column)
    _cut: dict[int, int] = field(default_factory=dict)
    _sessions: MutableSequence[int] = field(default_factory=lambda: array("H"))

    def grow(self) -> None:
        """Make room for one more rollout."""
        self._reserved.grow()
        self._ended.grow()
        self._sessions.append(0)

    def reserve(self, slot: int, attempt: int, session: int) -> None:
        """Note that `attempt` was handed out in `session`."""
        self._reserved.add(slot, attempt)
        self._sessions[slot] = min(session, 0xFFFF)

    def end(self, slot: int, attempt: int) -> None:
        """Note that `attempt` ended, or never ran."""
        self._ended.add(slot, attempt)

    def cut(self, slot: int, attempt: int) -> None:
        """Note that `attempt` was ended by the process that had sent it."""
        self._cut[slot] = self._cut.get(slot, 0) | 1 << attempt

    def is_reserved(self, slot: int, attempt: int) -> bool:
        """Whether `attempt` was handed out."""
        return bool(self._reserved.of(slot) >> attempt & 1)

    def has_ended(self, slot: int, attempt: int) -> bool:
        """Whether `attempt` ended."""
        return bool(self._ended.of(slot) >> attempt & 1)

    def next_number(self, slot: int) -> int:
        """Return the number after every one that was handed out or carried by a record."""
        return (self._reserved.of(slot) | self._ended.of(slot)).bit_length()

    def lowest_unused(self, slot: int) -> int:
        """Return the lowest number that was neither handed out nor carried by a record."""
        used = self._reserved.of(slot) | self._ended.of(slot)
        return (~used & used + 1).bit_length() - 1

    def open_attempt(self, slot: int) -> int | None:
        """Return the latest attempt that was handed out and did not end."""
        unended = self._reserved.of(slot) & ~self._ended.of(slot)
        return unended.bit_length() - 1 if unended else None

    def lost(self, slot: int) -> Iterator[int]:
        """Yield the attempts that did not end and that nobody cut, in order."""
        bits = self._reserved.of(slot) & ~self._ended.of(slot) & ~self._cut.get(slot, 0)
        while bits:
            lowest = bits & -bits
            yield lowest.bit_length() - 1
            bits ^= lowest

    def was_cut(self, slot: int, attempt: int) -> bool:
        """Whether `attempt` was ended by the process that had sent it."""
        return bool(self._cut.get(slot, 0) >> attempt & 1)

    def session(self, slot: int) -> int:
        """Return the session in which the rollout's latest number was handed out."""
        return self._sessions[slot]

    def handed_out(self, slot: int) -> int:
        """Return how many numbers were handed out."""
        return self._reserved.of(slot).bit_count()
