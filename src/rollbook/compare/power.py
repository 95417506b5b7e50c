"""What a comparison could have seen, and how much more data would decide it.

Rules:
* A difference counts as decidable where it is found with `power`, at a two-sided `alpha`.
* More repeats make the noise of single tries smaller, never the spread between tasks: where that alone hides the
  difference, the answer is more tasks.

The variance of the mean difference over n tasks with r repeats on each side is (t² + (b² + c²) / r) / n: t² between
tasks, b² and c² within the tasks of either side. t² is the variance of the differences less what repeats explain.

Source: Miller 2024, "Adding Error Bars to Evals" (arXiv:2411.00640), §3.1 (repeats), §5 (power); Cohen 1988, §2.2.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Final

from rollbook.compare.paired import PairedTask, differences_of
from rollbook.scoring.spread import mean, sample_std

POWER: Final = 0.8
ALPHA: Final = 0.05
_NOTHING: Final = 1e-12


@dataclass(frozen=True, slots=True)
class Needed:
    """What would show a difference as large as the one that was seen.

    `repeats` of every task on each side, in all, on the tasks that there are; `tasks` in all, with the repeats that
    they have. None where no number of them would, or where the data does not tell; `why` says which.
    """

    repeats: int | None
    tasks: int | None
    why: str


def minimum_detectable_effect(standard_error: float, *, power: float = POWER, alpha: float = ALPHA) -> float:
    """Return the smallest true difference that would be found with `power`."""
    return _factor(power, alpha) * standard_error


def needed(tasks: Sequence[PairedTask], *, power: float = POWER, alpha: float = ALPHA) -> Needed:
    """Return how many repeats, or tasks, would show the difference that `tasks` have."""
    differences = differences_of(tasks)
    spread, center = sample_std(differences), mean(differences)
    if spread is None or center is None:
        return Needed(None, None, "fewer than two tasks are scored on both sides")
    if abs(center) <= _NOTHING:
        return Needed(None, None, "there is no difference to show")
    wanted = (center / _factor(power, alpha)) ** 2
    more_tasks = max(2, math.ceil(spread * spread / wanted))
    repeats, why = _repeats(tasks, spread * spread, wanted)
    return Needed(repeats, more_tasks, why)


def _repeats(tasks: Sequence[PairedTask], variance: float, wanted: float) -> tuple[int | None, str]:
    baseline = _within(task.baseline for task in tasks)
    candidate = _within(task.candidate for task in tasks)
    if baseline is None or candidate is None:
        return None, "one repeat of a task does not tell how much repeats differ"
    noise = math.fsum(baseline / len(task.baseline) + candidate / len(task.candidate) for task in tasks) / len(tasks)
    between = max(0.0, variance - noise)
    room = len(tasks) * wanted - between
    if room <= 0:
        return None, "tasks differ too much among each other: only more tasks would show it"
    return max(1, math.ceil((baseline + candidate) / room)), "with as many repeats of every task on each side"


def _within(sides: Iterable[tuple[float, ...]]) -> float | None:
    """Return the pooled variance of repeats within their tasks; None where no task has two."""
    squares: list[float] = []
    degrees = 0
    for rewards in sides:
        spread = sample_std(rewards)
        if spread is not None:
            squares.append(spread * spread * (len(rewards) - 1))
            degrees += len(rewards) - 1
    return math.fsum(squares) / degrees if degrees else None


def _factor(power: float, alpha: float) -> float:
    law = NormalDist()
    return law.inv_cdf(1 - alpha / 2) + law.inv_cdf(power)
