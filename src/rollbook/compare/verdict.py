"""What two runs' difference comes to in a word, and why not in a better one.

Rules:
* Where too little is scored on a side, or too few tasks are on both, nothing is better or worse unless it stays so in
  the worst case of what is missing.
* Where it is not known what was to be run, it is not known what is missing: that is too little as well, unless what is
  there is to be taken for all.
* Of files that cannot be believed nothing is concluded.
* `no difference shown` is no proof of sameness: it always comes with the difference that could have been seen.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from rollbook.compare.row_difference import RowDifference
from rollbook.compare.side import SideFacts

_FEWEST: Final = 1
UNKNOWN: Final = "no plan is there, so what was to be run, and what is missing of it, is not known"
DAMAGED: Final = "its files are damaged; gym eval status names each place"


class Verdict(StrEnum):
    """Of a candidate against its baseline."""

    BETTER = "better"
    WORSE = "worse"
    NO_DIFFERENCE = "no difference shown"
    COVERAGE = "inconclusive because of coverage"
    DAMAGE = "inconclusive because of damage"


@dataclass(frozen=True, slots=True)
class Judgement:
    """The verdict, the p-value that it rests on (adjusted where there are several candidates), and what is lacking."""

    verdict: Verdict
    p_value: float | None
    lacking: tuple[str, ...]


def judged(
    difference: RowDifference,
    p_value: float | None,
    *,
    alpha: float,
    min_coverage: float,
    assume_complete: bool = False,
) -> Judgement:
    """Return the judgement of one candidate whose p-value, adjusted or not, is `p_value`.

    `assume_complete`: where a side has no plan, what is there is all that was to be run.
    """
    damaged = tuple(damages(difference))
    if damaged:
        return Judgement(Verdict.DAMAGE, p_value, damaged)
    unknown = () if assume_complete or not min_coverage else tuple(_unknown(difference))
    lacks = (*unknown, *lacking(difference, min_coverage))
    if difference.scored_pairs < _FEWEST or unknown or (lacks and not _stays(difference)):
        return Judgement(Verdict.COVERAGE, p_value, lacks or ("no task is scored on both sides",))
    shown = p_value is not None and p_value < alpha and difference.difference
    if not shown:
        return Judgement(Verdict.COVERAGE if lacks else Verdict.NO_DIFFERENCE, p_value, lacks)
    return Judgement(Verdict.BETTER if shown > 0 else Verdict.WORSE, p_value, lacks)


def sides_of(difference: RowDifference) -> tuple[tuple[str, SideFacts], ...]:
    """Return both sides by their names."""
    return ("baseline", difference.baseline), ("candidate", difference.candidate)


def measured_of(side: SideFacts) -> str:
    """Return how many of a side's rollouts have a reward."""
    zeros = " or count as zero" if side.counted else ""
    return f"{side.measured} of {side.expected} rollouts are scored{zeros}"


def damages(difference: RowDifference) -> Iterator[str]:
    """Yield which sides' files cannot be believed."""
    yield from (f"{name}: {DAMAGED}" for name, side in sides_of(difference) if side.is_damaged)


def _unknown(difference: RowDifference) -> Iterator[str]:
    yield from (f"{name}: {UNKNOWN}" for name, side in sides_of(difference) if not side.has_plan)


def lacking(difference: RowDifference, min_coverage: float) -> Iterator[str]:
    """Yield in which way either side covers less than `min_coverage`."""
    for name, side in sides_of(difference):
        if side.coverage < min_coverage:
            yield f"{name}: {measured_of(side)}{_short_of(side.coverage, min_coverage)}"
    ours, theirs = (
        (difference.baseline, difference.shared_baseline),
        (difference.candidate, difference.shared_candidate),
    )
    for name, (side, shared) in (("baseline", ours), ("candidate", theirs)):
        if shared < min_coverage:
            pairs = f"{difference.paired.pairs} of its {side.tasks} tasks are on both sides"
            yield f"{name}: {pairs}{_short_of(shared, min_coverage)}"


def _short_of(share: float, wanted: float) -> str:
    return f" ({100 * share:.1f} %, and {100 * wanted:g} % are wanted)"


def _stays(difference: RowDifference) -> bool:
    """Whether the sign of the difference is the same whatever is missing."""
    bounds = difference.bounds
    return bounds is not None and (bounds.low > 0 or bounds.high < 0)
