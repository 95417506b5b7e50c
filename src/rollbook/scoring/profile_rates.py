"""What one task's rollouts achieved: the figures by which tasks are told easy from hard.

Rules:
* One scored rollout is one sample, whatever is inside it; a masked, failed or missing one is none.
* pass@k is the unbiased estimate where every reward is 0 or 1, else the largest of the first k; a fraction.
* With fewer than k rollouts pass@k is undefined, and never guessed.

Source: collection.md §6.4, §9.4; Chen et al. 2021 (arXiv:2107.03374), §2.1; cases RC-74, RC-77.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from rollbook.scoring.pass_at_k import pass_at_k
from rollbook.scoring.profile_filter import PASS
from rollbook.scoring.spread import mean, sample_std

SHOWN_KS: Final = tuple(1 << power for power in range(11))
"""The k of which pass@k is told, as far as a task has so many rollouts."""

_BINARY: Final = frozenset((0.0, 1.0))


@dataclass(frozen=True, slots=True)
class TaskRates:
    """The rewards of a task's scored rollouts in the order of the repeats, and how many were planned."""

    rewards: Sequence[float]
    planned: int

    @property
    def missing(self) -> int:
        """How many planned rollouts have no reward that counts."""
        return max(0, self.planned - len(self.rewards))

    def value(self, name: str) -> float | None:
        """Return what `name` stands for in a condition, None where it is undefined for this task."""
        if name.startswith(PASS):
            return self.pass_at(int(name.removeprefix(PASS)))
        return _FIGURES[name](self)

    def pass_at(self, k: int) -> float | None:
        """Return pass@k as a fraction, None of fewer than k rollouts."""
        n = len(self.rewards)
        if not 0 < k <= n:
            return None
        correct = self.correct
        return max(self.rewards[:k]) if correct is None else pass_at_k(n, correct, k)

    @property
    def correct(self) -> int | None:
        """How many rollouts are right, None where a reward is neither 0 nor 1."""
        return round(sum(self.rewards)) if _BINARY.issuperset(self.rewards) else None

    def shown(self) -> dict[int, float]:
        """Return pass@k for each of `SHOWN_KS` of which there are so many rollouts."""
        correct = self.correct
        if correct is not None:
            return binary_rates(len(self.rewards), correct)
        return {k: max(self.rewards[:k]) for k in SHOWN_KS if k <= len(self.rewards)}


@lru_cache(maxsize=1 << 16)
def binary_rates(n: int, correct: int) -> dict[int, float]:
    """Return pass@k for each of `SHOWN_KS` up to `n` rollouts, `correct` of which are right."""
    return {k: pass_at_k(n, correct, k) for k in SHOWN_KS if k <= n}


_FIGURES: Final[Mapping[str, Callable[[TaskRates], float | None]]] = {
    "n": lambda task: float(len(task.rewards)),
    "missing": lambda task: float(task.missing),
    "mean": lambda task: mean(task.rewards),
    "std": lambda task: sample_std(task.rewards),
    "max": lambda task: max(task.rewards, default=None),
    "min": lambda task: min(task.rewards, default=None),
}
