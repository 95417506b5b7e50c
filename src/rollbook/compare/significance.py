"""Could the difference between two runs be chance? Tests of paired tasks, and which of them fits the data.

Rules:
* Every p-value is two-sided. Tasks are the units: repeats of one task do not count as more evidence than they are.
* What decides is about the mean. Single answers, right or wrong, are McNemar's; everything else is a permutation of
  signs, exact for few tasks and drawn from `seed` for more. Where every difference other than zero has one size, that
  is the sign test, which is then exact for any number of tasks.
* Where one task outweighs all others together, how many tasks fell and rose is told as well; it decides nothing.
* A p-value of draws is never 0: (draws as extreme + 1) / (draws + 1).

Source: McNemar 1947, exact form; Dixon and Mood 1946 (sign test); Fisher 1935, §21 (permutation of signs); Phipson and
Smyth 2010 (the + 1).
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import compress
from statistics import NormalDist
from typing import Final

from rollbook.compare.draws import Draws, seeded
from rollbook.compare.paired import PairedTask, differences_of

DRAWS: Final = 10_000
_EXACT_TASKS: Final = 16
_MOST_WORK: Final = 20_000_000
_SAME: Final = 1e-9
_FEWEST_FOR_SIGNS: Final = 6
_OUTWEIGHS: Final = 0.5


@dataclass(frozen=True, slots=True)
class Signs:
    """How many tasks fell and how many rose, and the p-value of the sign test of that."""

    fell: int
    rose: int
    p_value: float


@dataclass(frozen=True, slots=True)
class ChosenTest:
    """Which test was made, its two-sided p-value (None where there is nothing to test), and why that test.

    `signs` are there where one task's difference outweighs all others together: they say what most tasks did, and may
    say the opposite of the mean.
    """

    name: str
    p_value: float | None
    why: str
    signs: Signs | None = None


def chosen_test(tasks: Sequence[PairedTask], *, seed: int = 0) -> ChosenTest:
    """Return the result of the test that fits the shape of `tasks`."""
    if not tasks:
        return ChosenTest("none", None, "no task is scored on both sides")
    if all(task.is_single and task.is_binary for task in tasks):
        changes = Counter(task.difference for task in tasks)
        return ChosenTest("mcnemar", mcnemar_exact(changes[-1.0], changes[1.0]), "one answer a side, right or wrong")
    differences = differences_of(tasks)
    signs = signs_of(differences) if _is_outweighed(differences) else None
    if _have_one_size(differences):
        return ChosenTest("sign", sign_test(differences), "differences that are all of one size", signs)
    several = not all(task.is_single for task in tasks)
    why = "means of several repeats a task" if several else "rewards that are more than right or wrong"
    return ChosenTest("permutation", permutation_test(differences, seed=seed), why, signs)


def mcnemar_exact(worse: int, better: int) -> float:
    """Return the chance of a split as uneven as `worse` to `better`, if both were equally likely."""
    changed, fewer = worse + better, min(worse, better)
    if changed == 2 * fewer:
        return 1.0
    log_chance = math.lgamma(changed + 1) - math.lgamma(fewer + 1) - math.lgamma(changed - fewer + 1)
    chance = math.exp(log_chance - changed * math.log(2))
    tail, count = 0.0, fewer
    while count >= 0 and chance > tail * 1e-18:
        tail += chance
        chance *= count / (changed - count + 1)
        count -= 1
    return min(1.0, 2 * tail)


def sign_test(differences: Iterable[float]) -> float:
    """Return the p-value of how many differences are negative and how many positive; zeros say nothing."""
    return signs_of(differences).p_value


def signs_of(differences: Iterable[float]) -> Signs:
    """Return how many differences are negative and how many positive, and what that comes to."""
    signs = Counter(math.copysign(1, value) for value in differences if value)
    fell, rose = signs[-1.0], signs[1.0]
    return Signs(fell, rose, mcnemar_exact(fell, rose))


def permutation_test(differences: Iterable[float], *, seed: int = 0) -> float:
    """Return the p-value of the sum of `differences`, each of which might as well have had the other sign.

    Exact for up to 16 differences other than zero; else of 10,000 draws, and of the normal law, which such sums follow,
    where draws would take too long.
    """
    values = [value for value in differences if value]
    return _permuted(Counter(map(abs, values)), abs(math.fsum(values)), seed)


def _permuted(sizes: Counter[float], observed: float, seed: int) -> float:
    total = sizes.total()
    if not total:
        return 1.0
    bound = observed - _SAME * max(1.0, observed)
    if total <= _EXACT_TASKS:
        sums = _every_sum([*sizes.elements()])
        return sum(abs(value) >= bound for value in sums) / len(sums)
    if len(sizes) * DRAWS > _MOST_WORK:
        spread = math.sqrt(math.fsum(size * size * count for size, count in sizes.items()))
        return 2 * NormalDist().cdf(-observed / spread)
    chance = seeded(seed)
    return (sum(abs(value) >= bound for value in _drawn_sums(sizes, chance)) + 1) / (DRAWS + 1)


def _every_sum(sizes: Sequence[float]) -> list[float]:
    sums = [0.0]
    for size in sizes:
        sums = [value + signed for value in sums for signed in (size, -size)]
    return sums


def _drawn_sums(sizes: Counter[float], chance: Draws) -> Iterable[float]:
    """Yield sums of sizes with random signs; of equal sizes, one draw says how many are positive."""
    single = [size for size, count in sizes.items() if count == 1]
    several = [(size, count) for size, count in sizes.items() if count > 1]
    whole = math.fsum(single)
    for _ in range(DRAWS):
        positive = (
            sum(compress(single, map(int, f"{chance.getrandbits(len(single)):0{len(single)}b}"))) if single else 0
        )
        value = 2 * positive - whole
        for size, count in several:
            value += size * (2 * chance.getrandbits(count).bit_count() - count)
        yield value


def _have_one_size(differences: Sequence[float]) -> bool:
    """Whether there are differences other than zero, and all of them are equally large."""
    sizes = [abs(value) for value in differences if value]
    return bool(sizes) and max(sizes) - min(sizes) <= _SAME * max(sizes)


def _is_outweighed(differences: Sequence[float]) -> bool:
    squares = [value * value for value in differences if value]
    return len(squares) >= _FEWEST_FOR_SIGNS and max(squares) > _OUTWEIGHS * math.fsum(squares)
