"""What one task's rollouts achieved: the figures by which tasks are told easy from hard.

Rules:
* One scored rollout is one sample, whatever is inside it; a masked, failed or missing one is none.
* pass@k is the unbiased estimate where every reward is 0 or 1, else the largest of the first k; a fraction.
* With fewer than k samples pass@k is undefined, and never guessed.

Source: collection.md §6.4, §9.4; Chen et al. 2021 (arXiv:2107.03374), §2.1; cases RC-74, RC-77.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from rollbook.scoring.pass_at_k import pass_at_k
from rollbook.scoring.profile_filter import PASS
from rollbook.scoring.spread import mean, sample_std

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
        """Return pass@k as a fraction, None of fewer than k samples."""
        n = len(self.rewards)
        if not 0 < k <= n:
            return None
        if _BINARY.issuperset(self.rewards):
            return pass_at_k(n, round(sum(self.rewards)), k)
        return max(self.rewards[:k])


_FIGURES: Final[Mapping[str, Callable[[TaskRates], float | None]]] = {
    "n": lambda task: float(len(task.rewards)),
    "missing": lambda task: float(task.missing),
    "mean": lambda task: mean(task.rewards),
    "std": lambda task: sample_std(task.rewards),
    "max": lambda task: max(task.rewards, default=None),
    "min": lambda task: min(task.rewards, default=None),
}


def pass_rates(tasks: Iterable[TaskRates], ks: Sequence[int]) -> tuple[Mapping[int, float], Mapping[int, int]]:
    """Return the mean of pass@k over the tasks that have k samples, and how many tasks have fewer, for each k."""
    sums, counts, short = dict.fromkeys(ks, 0.0), dict.fromkeys(ks, 0), dict.fromkeys(ks, 0)
    for task in tasks:
        for k in ks:
            rate = task.pass_at(k)
            if rate is None:
                short[k] += 1
            else:
                sums[k] += rate
                counts[k] += 1
    return {k: sums[k] / counts[k] for k in ks if counts[k]}, short
