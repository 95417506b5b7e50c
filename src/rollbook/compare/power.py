"""What a comparison could have seen, and how much more data would decide it.

Rules:
* A difference counts as decidable where it is found with `power`, at a two-sided `alpha`. Quantiles are Student's.
* n tasks of which every one differs in the same direction have a p-value of 2^(1 - n): with fewer tasks than bring that
  below `alpha` nothing can be shown, whatever their repeats.
* Tasks that differ all alike say nothing of how much others would spread: then nothing is said of it.
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

from rollbook.compare.interval import is_alike
from rollbook.compare.paired import PairedTask, differences_of
from rollbook.scoring.spread import mean, sample_std
from rollbook.scoring.student_t import t_quantile

POWER: Final = 0.8
ALPHA: Final = 0.05
_NOTHING: Final = 1e-12
_LIKE_NORMAL: Final = 100_000
"""With so many tasks Student's quantiles are the normal ones."""


@dataclass(frozen=True, slots=True)
class Needed:
    """What would show a difference as large as the one that was seen.

    `repeats` of every task on each side, in all, on the tasks that there are; `tasks` in all, with the repeats that
    they have. None where no number of them would, or where the data does not tell; `why` says which.
    """

    repeats: int | None
    tasks: int | None
    why: str


def fewest_tasks(alpha: float = ALPHA) -> int:
    """Return how many tasks have to differ, all in one direction, for a p-value below `alpha`."""
    return math.floor(1 - math.log2(alpha)) + 1


def minimum_detectable_effect(
    standard_error: float, tasks: int, *, power: float = POWER, alpha: float = ALPHA
) -> float | None:
    """Return the smallest true difference that would be found with `power`; None where so few tasks find none.

    The result may be larger than any difference that is possible.
    """
    if tasks < fewest_tasks(alpha) or is_alike(standard_error * math.sqrt(tasks), 0.0):
        return None
    return _factor(tasks, power, alpha) * standard_error


def needed(tasks: Sequence[PairedTask], *, power: float = POWER, alpha: float = ALPHA) -> Needed:
    """Return how many repeats, or tasks, would show the difference that `tasks` have."""
    differences = differences_of(tasks)
    spread, center = sample_std(differences), mean(differences)
    if spread is None or center is None:
        return Needed(None, None, "fewer than two tasks are scored on both sides")
    count, least = len(tasks), fewest_tasks(alpha)
    if count < least:
        why = f"{count} tasks can show nothing at {alpha:g}, whatever their repeats; {least} tasks can"
        return Needed(None, _more_tasks(spread, center, least, power, alpha), why)
    if is_alike(spread, center):
        return Needed(None, None, "the tasks differ all alike, so nothing tells how much others would spread")
    if abs(center) <= _NOTHING:
        return Needed(None, None, "there is no difference to show")
    repeats, why = _repeats(tasks, spread * spread, (center / _factor(count, power, alpha)) ** 2)
    return Needed(repeats, _more_tasks(spread, center, least, power, alpha), why)


def _more_tasks(spread: float, center: float, least: int, power: float, alpha: float) -> int | None:
    """Return how many tasks would show a mean of `center`; None of none."""
    if abs(center) <= _NOTHING:
        return None
    law = NormalDist()
    shift = (law.inv_cdf(1 - alpha / 2) + law.inv_cdf(power)) * spread / abs(center)
    count = max(least, math.ceil(shift * shift))
    while count < _LIKE_NORMAL and _factor(count, power, alpha) * spread > abs(center) * math.sqrt(count):
        count += 1
    return count


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


def _factor(tasks: int, power: float, alpha: float) -> float:
    return t_quantile(1 - alpha / 2, tasks - 1) + t_quantile(power, tasks - 1)
