"""The difference between two runs by their rows: over the tasks that both have, and what is missing beside it.

Rules:
* Every task weighs the same, whatever its repeats: the mean of a side is the mean of its tasks' means.
* A difference never stands without the coverage of both sides, and the bounds between which it would lie if what is
  known to be missing had been all 0 or all 1.
* A difference that is too large for a float is infinite, never absent; one that rounding alone makes is 0.

Source: collection.md §9.2.
"""

import math
from array import array
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from rollbook.compare.interval import Interval, difference_interval, standard_error
from rollbook.compare.paired import beyond_rounding, differences_of
from rollbook.compare.pairing import Pairing
from rollbook.compare.power import Needed, minimum_detectable_effect, needed
from rollbook.compare.scored_pairs import ScoredPairs
from rollbook.compare.side import Side, SideFacts, facts_of
from rollbook.compare.significance import ChosenTest, chosen_test
from rollbook.scoring.spread import mean

ALPHA: Final = 0.05
MIN_COVERAGE: Final = 0.95
_LISTED: Final = 20


@dataclass(frozen=True, slots=True)
class Bounds:
    """The difference if what is missing were the candidate's worst (`low`) and best (`high`) case.

    `baseline_at_best`: the baseline's mean in the candidate's best case, where what the baseline misses is 0.
    """

    low: float
    high: float
    baseline_at_best: float


@dataclass(frozen=True, slots=True)
class PairCounts:
    """How tasks were paired, by what; how many stand on one side only, and the numbers of the first of those.

    `changed`: pairs of which it is known that the sides do not say the same. `ambiguous_…`: of those on one side only,
    how many might be one of several tasks of the other side.
    """

    pairs: int
    by: dict[str, int]
    twins: int
    changed: int
    only_baseline: int
    only_candidate: int
    ambiguous_baseline: int
    ambiguous_candidate: int
    first_only_baseline: tuple[int, ...]
    first_only_candidate: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class RowDifference:
    """What two runs' rows say: both sides, how they were paired, and the difference over pairs scored on both.

    `detectable`: the smallest true difference that this much data finds in 4 of 5 cases, None where nothing tells it;
    `largest`: the largest that is possible. That and `bounds` are None unless every reward lies in 0..1.
    """

    baseline: SideFacts
    candidate: SideFacts
    paired: PairCounts
    scored_pairs: int
    baseline_mean: float | None
    candidate_mean: float | None
    difference: float | None
    standard_error: float | None
    interval: Interval
    bounds: Bounds | None
    test: ChosenTest
    detectable: float | None
    needed: Needed
    largest: float | None

    @property
    def has_plans(self) -> bool:
        """Whether it is known of both sides what was to be run."""
        return self.baseline.has_plan and self.candidate.has_plan

    @property
    def shared_baseline(self) -> float:
        """The share of the baseline's tasks that have a partner."""
        return self.paired.pairs / self.baseline.tasks if self.baseline.tasks else 0.0

    @property
    def shared_candidate(self) -> float:
        """The share of the candidate's tasks that have a partner."""
        return self.paired.pairs / self.candidate.tasks if self.candidate.tasks else 0.0


def row_difference(
    baseline: Side, candidate: Side, pairing: Pairing, *, alpha: float = ALPHA, seed: int = 0
) -> RowDifference:
    """Return the difference over `pairing`; chance in tests and intervals comes from `seed`."""
    pairs = ScoredPairs(baseline, candidate, pairing)
    unit, differences = pairs.unit, differences_of(pairs)
    error = standard_error(differences)
    ours = facts_of(baseline, _units(pairing.baseline, pairing.only_baseline))
    theirs = facts_of(candidate, _units(pairing.candidate, pairing.only_candidate))
    worths = _Worth(baseline, ours), _Worth(candidate, theirs)
    within_unit = all(worth.is_bounded for worth in worths)
    interval = difference_interval(differences, level=1 - alpha, seed=seed, within_unit=within_unit)
    before, after = (mean(array("d", (means[at] for means in pairs.means()))) for at in (0, 1))
    size = max(abs(value) for value in (before or 0.0, after or 0.0, *differences))
    return RowDifference(
        baseline=ours,
        candidate=theirs,
        paired=_counts(baseline, candidate, pairing),
        scored_pairs=len(pairs),
        baseline_mean=_times(unit, before),
        candidate_mean=_times(unit, after),
        difference=_told(unit, mean(differences), size),
        standard_error=_times(unit, error),
        interval=Interval(_told(unit, interval.low, size), _told(unit, interval.high, size), interval.how),
        bounds=_bounds(*worths, pairing) if within_unit else None,
        test=chosen_test(pairs, seed=seed),
        detectable=_times(unit, _detectable(error, len(pairs), alpha)),
        needed=needed(pairs, alpha=alpha),
        largest=1.0 if within_unit else None,
    )


def _detectable(error: float | None, tasks: int, alpha: float) -> float | None:
    return None if error is None else minimum_detectable_effect(error, tasks, alpha=alpha)


def _told(unit: float, difference: float | None, size: float) -> float | None:
    """Return a difference of values of that `size`, measured in `unit`; 0 where rounding alone makes it."""
    return None if difference is None else _times(unit, beyond_rounding(difference, size))


def _times(unit: float, value: float | None) -> float | None:
    """Return a value that was measured in `unit`, infinite where no float holds it."""
    return None if value is None else value * unit


def selected(baseline: Side, candidate: Side, pairing: Pairing, fits: Callable[[Side, int], bool]) -> Pairing:
    """Return the pairs whose baseline unit fits, and the tasks of one side that do."""
    part = Pairing()
    for (mine, other), how in zip(pairing, pairing.how, strict=True):
        if fits(baseline, mine):
            part.baseline.append(mine)
            part.candidate.append(other)
            part.how.append(how)
    part.only_baseline.extend(unit for unit in pairing.only_baseline if fits(baseline, unit))
    part.only_candidate.extend(unit for unit in pairing.only_candidate if fits(candidate, unit))
    part.ambiguous_baseline.extend(unit for unit in pairing.ambiguous_baseline if fits(baseline, unit))
    part.ambiguous_candidate.extend(unit for unit in pairing.ambiguous_candidate if fits(candidate, unit))
    return part


def _units(paired: Iterable[int], only: Iterable[int]) -> Iterable[int]:
    yield from paired
    yield from only


def _counts(baseline: Side, candidate: Side, pairing: Pairing) -> PairCounts:
    return PairCounts(
        pairs=len(pairing),
        by=pairing.counts(),
        twins=pairing.twins,
        changed=sum(_says_another_thing(baseline, mine, candidate, other) for mine, other in pairing),
        only_baseline=len(pairing.only_baseline),
        only_candidate=len(pairing.only_candidate),
        ambiguous_baseline=len(pairing.ambiguous_baseline),
        ambiguous_candidate=len(pairing.ambiguous_candidate),
        first_only_baseline=tuple(baseline.task[unit] for unit in pairing.only_baseline[:_LISTED]),
        first_only_candidate=tuple(candidate.task[unit] for unit in pairing.only_candidate[:_LISTED]),
    )


def _says_another_thing(baseline: Side, mine: int, candidate: Side, other: int) -> bool:
    """Whether it is known that two units do not say the same."""
    return any(
        ours[mine] and theirs[other] and ours[mine] != theirs[other]
        for ours, theirs in ((baseline.contents, candidate.contents), (baseline.prompts, candidate.prompts))
    )


class _Worth:
    """What a task's mean is at least and at most, when what is missing of it may be anything from 0 to 1."""

    def __init__(self, side: Side, facts: SideFacts) -> None:
        self._side = side
        self._whole = 0 if facts.has_plan else facts.many

    @property
    def is_bounded(self) -> bool:
        """Whether every reward lies in 0..1."""
        rewards = self._side.scored
        return not rewards or (min(rewards) >= 0 and max(rewards) <= 1)

    def __call__(self, unit: int) -> tuple[float, float]:
        size = max(self._side.size(unit), self._whole)
        had, missing = sum(self._side.rewards(unit)), size - self._side.scored_count(unit)
        return had / size, (had + missing) / size


def _bounds(ours: _Worth, theirs: _Worth, pairing: Pairing) -> Bounds | None:
    """Return the bounds over every task of either side; a task that one side lacks may be anything there."""
    low: list[float] = []
    high: list[float] = []
    best: list[float] = []
    for mine, other in pairing:
        (least, most), (other_least, other_most) = ours(mine), theirs(other)
        low.append(other_least - most)
        high.append(other_most - least)
        best.append(least)
    for mine in pairing.only_baseline:
        least, most = ours(mine)
        low.append(-most)
        high.append(1 - least)
        best.append(least)
    for other in pairing.only_candidate:
        least, most = theirs(other)
        low.append(least - 1)
        high.append(most)
        best.append(0.0)
    if not low:
        return None
    return Bounds(*(beyond_rounding(math.fsum(values) / len(values), 1.0) for values in (low, high, best)))
