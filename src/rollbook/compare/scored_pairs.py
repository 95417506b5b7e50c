"""The pairs of tasks that are scored on both sides, made when they are looked at.

Rules:
* A pair costs eight bytes until it is asked for; memory follows columns, not tasks as objects.
"""

from array import array
from collections.abc import Iterator, Sequence
from typing import overload

from rollbook.compare.flips import Change, Move
from rollbook.compare.paired import PairedTask
from rollbook.compare.pairing import Pairing
from rollbook.compare.side import Side


class ScoredPairs(Sequence[PairedTask]):
    """A sequence of pairs, each of whose sides has at least one scored rollout."""

    def __init__(self, baseline: Side, candidate: Side, pairing: Pairing) -> None:
        self.baseline, self.candidate = baseline, candidate
        self.ours, self.theirs = array("I"), array("I")
        for mine, other in pairing:
            if baseline.scored_count(mine) and candidate.scored_count(other):
                self.ours.append(mine)
                self.theirs.append(other)

    def __len__(self) -> int:
        """Return how many pairs are scored on both sides."""
        return len(self.ours)

    @overload
    def __getitem__(self, index: int) -> PairedTask: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[PairedTask]: ...
    def __getitem__(self, index: int | slice) -> PairedTask | Sequence[PairedTask]:
        """Make one pair, or several."""
        if isinstance(index, slice):
            return [self[place] for place in range(*index.indices(len(self)))]
        return self._pair(self.ours[index], self.theirs[index])

    def __iter__(self) -> Iterator[PairedTask]:
        """Make pair after pair."""
        return map(self._pair, self.ours, self.theirs)

    def _pair(self, ours: int, theirs: int) -> PairedTask:
        return PairedTask(tuple(self.baseline.rewards(ours)), tuple(self.candidate.rewards(theirs)))

    def is_binary(self) -> bool:
        """Whether every reward of every pair is 0 or 1."""
        return all(task.is_binary for task in self)

    def moves(self) -> Iterator[Move]:
        """Yield every pair's means."""
        for position, (ours, theirs) in enumerate(zip(self.ours, self.theirs, strict=True)):
            yield Move(position, mean_of(self.baseline, ours), mean_of(self.candidate, theirs))

    def change(self, move: Move) -> Change:
        """Return a pair as it is listed."""
        ours, theirs = self.ours[move.position], self.theirs[move.position]
        return Change(
            baseline_task=self.baseline.task[ours],
            candidate_task=self.candidate.task[theirs],
            agent=self.baseline.agents[self.baseline.agent[ours]],
            baseline=move.baseline,
            candidate=move.candidate,
            baseline_rewards=tuple(self.baseline.rewards(ours)),
            candidate_rewards=tuple(self.candidate.rewards(theirs)),
        )


def mean_of(side: Side, unit: int) -> float:
    """Return the mean reward of a unit that has one."""
    rewards = side.rewards(unit)
    return sum(rewards) / len(rewards)
