"""Which tasks changed sides, or moved: the table that a person reads first.

Rules:
* Where every reward is 0 or 1, a task passes above one half, fails below it, and is tied at it; a flip is a pass that
  became a failure, or the other way round. Elsewhere every task whose mean moved counts.
* Regressions come first, then the larger change; counts are of all tasks, whatever is listed.

Source: collection.md §9.2.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from heapq import nsmallest
from typing import Final, NamedTuple

_HALF: Final = 0.5


class Move(NamedTuple):
    """One task's mean rewards on both sides; `position` is its place among the tasks that are compared."""

    position: int
    baseline: float
    candidate: float

    @property
    def delta(self) -> float:
        """The candidate's mean less the baseline's."""
        return self.candidate - self.baseline


@dataclass(frozen=True, slots=True)
class Change:
    """A task that is listed: its number on both sides, its means, its rewards by repeat and what was answered."""

    baseline_task: int
    candidate_task: int
    agent: str | None
    baseline: float
    candidate: float
    baseline_rewards: tuple[float, ...] = ()
    candidate_rewards: tuple[float, ...] = ()
    baseline_answer: str | None = None
    candidate_answer: str | None = None

    @property
    def delta(self) -> float:
        """The candidate's mean less the baseline's."""
        return self.candidate - self.baseline


@dataclass(frozen=True, slots=True)
class Flips:
    """How many of `tasks` got worse, got better or are tied, and those that are listed; `kind`: binary, continuous."""

    kind: str
    tasks: int
    regressed: int
    improved: int
    tied: int
    listed: tuple[Change, ...]


def flips_of(
    moves: Callable[[], Iterable[Move]], changed: Callable[[Move], Change], *, binary: bool, most: int | None = None
) -> Flips:
    """Return the flips among `moves`, of each direction the first `most` as `changed` tells them."""
    tasks = regressed = improved = tied = 0
    for move in moves():
        direction = _direction(move, binary=binary)
        tasks += 1
        regressed += direction < 0
        improved += direction > 0
        tied += binary and _HALF in {move.baseline, move.candidate}
    worse = _largest((move for move in moves() if _direction(move, binary=binary) < 0), most, regressed)
    better = _largest((move for move in moves() if _direction(move, binary=binary) > 0), most, improved)
    listed = [*worse, *better] if binary else sorted([*worse, *better], key=_by_size)
    kind = "binary" if binary else "continuous"
    return Flips(kind, tasks, regressed, improved, tied, tuple(map(changed, listed)))


def _direction(move: Move, *, binary: bool) -> int:
    if not binary:
        return (move.candidate > move.baseline) - (move.candidate < move.baseline)
    if _HALF in {move.baseline, move.candidate}:
        return 0
    return (move.candidate > _HALF) - (move.baseline > _HALF)


def _largest(moves: Iterator[Move], most: int | None, count: int) -> list[Move]:
    return nsmallest(count if most is None else min(most, count), moves, key=_by_size)


def _by_size(move: Move) -> tuple[float, int]:
    return -abs(move.delta), move.position
