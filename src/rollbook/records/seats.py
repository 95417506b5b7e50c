"""Which seat each rollout has, at little more than the eight bytes of its key.

Rules:
* Keys lie in an array by seat. Where a plan is regular, the seat follows from the key; a guess counts once the key
  that lies there was looked at.
* Keys that rose as they came are searched by halves; a table holds only those that neither rose nor were guessed.
* What was found stays found: a guess is given up only while every key rises, and so is found without it.
* One thread names rollouts; others may look keys up meanwhile.
"""

from array import array
from bisect import bisect_left
from collections.abc import Iterator
from itertools import count
from math import inf
from operator import eq
from typing import Final, NamedTuple

STRIDE: Final = 61
LARGEST: Final = 0xFFFFFFFFFFFFFFFF
"""The largest key that an array holds."""
_ROLLOUTS: Final = 1 << 32
_NEXT_TASK: Final = _ROLLOUTS + STRIDE


class Guess(NamedTuple):
    """The seat of a key is taken to be task * `by_task` + rollout * `by_rollout` + `start`.

    `step`: what a task adds to packed key * `by_rollout` to come to the same.
    """

    by_task: int
    by_rollout: int
    start: int
    step: int


_NO_GUESS: Final = Guess(0, 0, -1, 0)


class Seats:
    """Packed key → seat. `keys`: the packed keys by seat; `guess`: for loops that look up very many."""

    __slots__ = ("_apart", "_is_regular", "_rising", "guess", "keys")

    def __init__(self) -> None:
        self.keys: array[int] | list[int] = array("Q")
        self.guess = _NO_GUESS
        self._rising: int | None = None
        self._is_regular = False
        self._apart: dict[int, int] = {}

    def __len__(self) -> int:
        """Return how many seats are taken."""
        return len(self.keys)

    def __iter__(self) -> Iterator[int]:
        """Yield the packed keys in the order of their seats."""
        return iter(self.keys)

    def items(self) -> Iterator[tuple[int, int]]:
        """Yield (packed key, seat) in the order of the seats."""
        return zip(self.keys, count(), strict=False)

    def get(self, packed: int) -> int | None:
        """Return the seat of a key, None when it was not named."""
        keys, (_, by_rollout, start, step) = self.keys, self.guess
        at = packed * by_rollout + (packed >> 32) * step + start
        if 0 <= at < len(keys) and keys[at] == packed:
            return at
        return self._searched(packed)

    def __getitem__(self, packed: int) -> int:
        """Return the seat of a key that was named.

        Raises:
            KeyError: it was not.

        """
        seat = self.get(packed)
        if seat is None:
            raise KeyError(packed)
        return seat

    def add(self, packed: int) -> int:
        """Return the seat of a key, the next one when it was not named before."""
        seat = len(self.keys)
        if packed > self.highest:
            self._append(packed)
            if self.guess is _NO_GUESS:
                self.learn()
            return seat
        if not (self._is_regular and self._guessed(packed) == seat):
            found = self.get(packed)
            if found is not None:
                return found
        self._add_out_of_order(packed, seat)
        return seat

    @property
    def highest(self) -> float:
        """A key above this one is new, and rises; no key does once one came out of order."""
        if self._rising is not None:
            return inf
        return self.keys[-1] if self.keys else -1

    @property
    def all_rise(self) -> bool:
        """Whether keys are in the order of their seats."""
        return self._rising is None

    def learn(self) -> None:
        """Learn from the first task how many rollouts one has, for plans that name task after task."""
        if self.guess is _NO_GUESS and self._rising is None and self.keys:
            first = self.keys[0]
            repeats = bisect_left(self.keys, ((first >> 32) + 1) << 32)
            if repeats < len(self.keys):
                self.guess = _guess_from(first, by_task=repeats, by_rollout=1)

    def _guessed(self, packed: int) -> int:
        _, by_rollout, start, step = self.guess
        return packed * by_rollout + (packed >> 32) * step + start

    def _searched(self, packed: int) -> int | None:
        keys = self.keys
        end, rising = len(keys), self._rising
        if rising is not None:
            end = rising
        at = bisect_left(keys, packed, 0, end)
        return at if at < end and keys[at] == packed else self._apart.get(packed)

    def _add_out_of_order(self, packed: int, seat: int) -> None:
        if self._rising is None:
            self._end_rise(packed)
        if self._guessed(packed) != seat:
            self._is_regular = False
            self._apart[packed] = seat
        self._append(packed)

    def _end_rise(self, packed: int) -> None:
        """Note that the key that comes next is out of order; where it begins the second repeats, guess by them."""
        self.learn()
        first, tasks = self.keys[0], len(self.keys)
        if packed == first + 1:
            first_repeats = range(first, first + tasks * _NEXT_TASK, _NEXT_TASK)
            if all(map(eq, self.keys, first_repeats)):
                self.guess = _guess_from(first, by_task=1, by_rollout=tasks)
                self._is_regular = True
        self._rising = tasks

    def _append(self, packed: int) -> None:
        try:
            self.keys.append(packed)
        except OverflowError:
            self.keys = [*self.keys, packed]


def _guess_from(first: int, *, by_task: int, by_rollout: int) -> Guess:
    """Return the guess that gives the key `first` the first seat."""
    task = first >> 32
    start = -(task * by_task + ((first - task * STRIDE) % _ROLLOUTS) * by_rollout)
    return Guess(by_task, by_rollout, start, by_task - by_rollout * _NEXT_TASK)
