"""What one task's rollouts achieve for k = 1, 2, …, n: one value for each k, in one pass.

Rules:
* The rollouts are taken in the order given; only pass@k of binary values looks at all of them for every k.

Source: collection.md §6.4; Chen et al. 2021 (arXiv:2107.03374), §2.1.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import accumulate

from rollbook.scoring.rows import Number


def average_series(values: Sequence[Number]) -> list[float]:
    """Return the mean of the first k values."""
    return [total / k for k, total in enumerate(accumulate(values), start=1)]


def pass_series(values: Sequence[Number]) -> list[float]:
    """Return pass@k: of binary values the chance that any k of them hold a 1, else the largest of the first k."""
    if any(value not in (0, 1) for value in values):
        return list(accumulate(values, max))
    n, wrong = len(values), sum(value == 0 for value in values)
    factors = ((wrong - drawn) / (n - drawn) for drawn in range(n))
    return [1 - all_wrong for all_wrong in accumulate(factors, lambda chance, factor: chance * max(factor, 0.0))]


def majority_series(votes: Iterable[tuple[object, Number | None]]) -> list[float]:
    """Return the score of the most frequent (answer, score) pair among the first k votes.

    A vote without answer or score (None) is none; tied pairs are worth the mean of their scores, no vote is worth 0.
    """
    counts: Counter[tuple[object, Number]] = Counter()
    most, tied_total, tied, series = 0, 0.0, 0, []
    for answer, score in votes:
        if answer is not None and score is not None:
            counts[answer, score] += 1
            count = counts[answer, score]
            if count > most:
                most, tied_total, tied = count, float(score), 1
            elif count == most:
                tied_total, tied = tied_total + score, tied + 1
        series.append(tied_total / tied if tied else 0.0)
    return series
