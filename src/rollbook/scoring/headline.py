"""The number that a run is known by, which never stands alone.

Rules:
* Beside the mean stand its standard error, its interval, what share of the plan it speaks for, and between which
  bounds it would lie were everything that is missing 0, or 1.
* Below the share that was asked for there is no headline, and it is said why; what was observed is told all the same.
* An interval speaks for other tasks of the same kind. Tasks that all agree, or fewer than two, say nothing of those.
* It is not cut where rewards end: that it reaches beyond them says that the normal approximation is rough there.

With G tasks of which at least one rollout is measured, mean m and its standard error s clustered by task, the 95 %
interval is m ± t s, where t is the 0.975 quantile of Student's distribution with G - 1 degrees of freedom.

Source: collection.md §6.6; Cameron and Miller 2015, "A Practitioner's Guide to Cluster-Robust Inference", §VI.D for
the degrees of freedom; case RC-71.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice
from typing import Final

from rollbook.records.headline import Headline, Measured, Range
from rollbook.scoring.estimates import ClusteredError, Rewards
from rollbook.scoring.exact_sum import Mean
from rollbook.scoring.student_t import t_quantile

MIN_COVERAGE: Final = 0.95
"""The share of the plan that a headline speaks for at least, where no other was asked for."""
CONFIDENCE: Final = 0.95

TOO_LARGE: Final = "the sum of the rewards is too large to be represented, and so there is no mean"
"""Why there is no mean of rewards that are there."""

_AT_ONCE: Final = 256
_ROUNDING: Final = 1e-12
"""A standard error this small beside its mean is what adding up left of none."""


def headline_of(observed: Measured, min_coverage: float | None = None) -> Headline:
    """Return what `observed` comes to as a headline; without a `min_coverage` it is `MIN_COVERAGE`."""
    least = MIN_COVERAGE if min_coverage is None else min_coverage
    coverage = min(observed.rollouts / observed.planned, 1.0) if observed.planned else 1.0
    return Headline(
        observed, _interval(observed), _bounds(observed), coverage, least, _why_withheld(observed, coverage, least)
    )


def measured(tasks: Callable[[], Iterable[Rewards]], planned: int, imputed: int = 0) -> Measured:
    """Return what the rewards of `tasks` come to, each the list of one task's; they are gone through twice."""
    mean, number, within = Mean(), 0, True
    for some in _some(tasks()):
        number += len(some)
        rewards = list(chain.from_iterable(some))
        mean.add(rewards)
        within = within and within_unit(rewards)
    center = mean.value()
    error = ClusteredError(center or 0.0)
    for some in _some(tasks()) if center is not None and number > 1 else ():
        error.add_all(some)
    return Measured(center, error.value(), number, mean.count, planned, imputed, within)


def _some(tasks: Iterable[Rewards]) -> Iterator[list[Rewards]]:
    """Yield the tasks that have rewards, some at a time."""
    left = filter(None, tasks)
    while some := list(islice(left, _AT_ONCE)):
        yield some


def within_unit(rewards: Rewards) -> bool:
    """Whether every reward lies from 0 to 1."""
    return not rewards or (min(rewards) >= 0 and max(rewards) <= 1)


def _interval(observed: Measured) -> Range | None:
    mean, error = observed.mean, observed.standard_error
    if mean is None or error is None or error <= _ROUNDING * abs(mean):
        return None
    reach = t_quantile(0.5 + CONFIDENCE / 2, observed.tasks - 1) * error
    return Range(mean - reach, mean + reach)


def _bounds(observed: Measured) -> Range | None:
    if not observed.planned or not observed.within_unit:
        return None
    if observed.rollouts >= observed.planned and observed.mean is not None:
        return Range(observed.mean, observed.mean)
    total = (observed.mean or 0.0) * observed.rollouts
    missing = observed.planned - observed.rollouts
    return Range(total / observed.planned, (total + missing) / observed.planned)


def _why_withheld(observed: Measured, coverage: float, least: float) -> str | None:
    if observed.mean is None:
        return TOO_LARGE if observed.rollouts else "nothing is scored"
    if coverage < least:
        told = f"{observed.rollouts} of {observed.planned} rollouts are measured ({100 * coverage:.1f} %)"
        return f"{told}, and --min-coverage asks for {100 * least:g} %"
    return None
