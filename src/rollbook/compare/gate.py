"""A policy held against a difference: every rule with its numbers, and what all of them come to.

Rules:
* Nothing passes on missing data: where too little is covered, a rule is inconclusive, or broken when even the best case
  of what is missing falls too far.
* Where it is not known what was to be run, it is not known what is missing, unless the policy takes what is there for
  all.
* What has to be significant has to be so in the direction that a limit is about, at the policy's level, and among all
  candidates.
* Of damaged files nothing is concluded, and nothing passes.
* The gravest outcome is the gate's: block, inconclusive, warn, pass.

Source: issue "Scores that can be defended", compare.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from rollbook.compare.metric_difference import MetricRow
from rollbook.compare.policy import REWARD, Demand, OnInconclusive, Policy, Severity
from rollbook.compare.row_difference import RowDifference
from rollbook.compare.side import SideFacts
from rollbook.compare.verdict import UNKNOWN, damages, measured_of, sides_of

BLOCKED: Final = 6
UNDECIDED: Final = 7
_ROUNDING: Final = 1e-12


class Ruling(StrEnum):
    """What one rule, or the gate, comes to."""

    PASS = "PASS"  # noqa: S105  the field's word for it, no secret
    WARN = "WARN"
    INCONCLUSIVE = "INCONCLUSIVE"
    BLOCK = "BLOCK"


_GRAVEST_FIRST: Final = (Ruling.BLOCK, Ruling.INCONCLUSIVE, Ruling.WARN)
EXIT_CODES: Final[Mapping[Ruling, int]] = {
    Ruling.PASS: 0,
    Ruling.WARN: 0,
    Ruling.BLOCK: BLOCKED,
    Ruling.INCONCLUSIVE: UNDECIDED,
}
_UNDECIDED: Final = {
    OnInconclusive.WARN: Ruling.WARN,
    OnInconclusive.BLOCK: Ruling.BLOCK,
    OnInconclusive.INCONCLUSIVE: Ruling.INCONCLUSIVE,
}


@dataclass(frozen=True, slots=True)
class RuleOutcome:
    """One rule of one tier: its limit, what was found in the same unit (None: nothing), the ruling, and why."""

    tier: str
    metric: str
    rule: str
    limit: float
    found: float | None
    ruling: Ruling
    why: str


@dataclass(frozen=True, slots=True)
class Facts:
    """What a limit is held against; a drop is positive where the candidate is worse.

    `lowest`: the lower end of the difference's interval. `best_drop` and `best_baseline`: drop and baseline when what
    is missing is the candidate's best case, None where that is unknown.
    """

    baseline: float | None
    drop: float | None
    lowest: float | None
    is_significant: bool
    best_drop: float | None = None
    best_baseline: float | None = None


def gate_of(rules: Sequence[RuleOutcome]) -> Ruling:
    """Return the gravest ruling; of no rule, none passes."""
    rulings = {rule.ruling for rule in rules}
    return next(
        (ruling for ruling in _GRAVEST_FIRST if ruling in rulings), Ruling.PASS if rules else Ruling.INCONCLUSIVE
    )


def ruled_by_rows(demand: Demand, difference: RowDifference, p_value: float | None) -> Iterator[RuleOutcome]:
    """Yield what `demand` says of the difference of two runs' rows.

    Of a field that is not the reward nobody knows how far it may go, so what is missing of it leaves limits undecided.
    """
    data = tuple(_data_rules(demand, difference))
    yield from data
    lacks = [rule.why for rule in data if rule.ruling is not Ruling.PASS]
    few_tasks = difference.scored_pairs < demand.min_tasks
    unknown = any(damages(difference)) or not (difference.has_plans or demand.assume_complete)
    no_bounds = few_tasks or unknown or demand.tier.field != REWARD
    bounds = None if no_bounds else difference.bounds
    sign = -1 if demand.tier.lower_is_better else 1
    lowest = difference.interval.low if sign == 1 else difference.interval.high
    best = None if bounds is None else sign * (bounds.high if sign == 1 else bounds.low)
    facts = Facts(
        baseline=difference.baseline_mean,
        drop=None if difference.difference is None else -sign * difference.difference,
        lowest=None if lowest is None else sign * lowest,
        is_significant=_falls(difference.difference, sign) and p_value is not None and p_value < demand.alpha,
        best_drop=None if best is None else -best,
        best_baseline=None if bounds is None or sign == -1 else bounds.baseline_at_best,
    )
    yield from (_limited(demand, name, limit, facts, lacks) for name, limit in demand.limits)


def metric_facts(row: MetricRow, demand: Demand, p_value: float | None) -> Facts:
    """Return what a limit is held against, of one metric; a drop is a rise where lower is better.

    `p_value` is that of Welch's test among all candidates. Repeats that do not differ tell no interval.
    """
    sign = -1 if demand.tier.lower_is_better else 1
    has_interval = row.welch is not None and row.welch.has_spread
    ends = sorted(sign * end for end in row.welch.interval(demand.alpha)) if row.welch and has_interval else None
    return Facts(
        baseline=row.baseline,
        drop=None if row.delta is None else -sign * row.delta,
        lowest=ends[0] if ends else None,
        is_significant=_falls(row.delta, sign) and p_value is not None and p_value < demand.alpha,
    )


def ruled_by_metric(demand: Demand, facts: Facts, coverage: Sequence[float | None]) -> Iterator[RuleOutcome]:
    """Yield what `demand` says of an aggregate metric, of which the sides cover so much (None: nobody knows)."""
    known = [share for share in coverage if share is not None]
    all_known = bool(known) and len(known) == len(coverage)
    lowest = min(known, default=1.0) if all_known or demand.assume_complete else None
    enough = demand.min_coverage == 0 or (lowest is not None and lowest >= demand.min_coverage)
    said = "what the metrics cover is not recorded" if lowest is None else f"a side covers {100 * lowest:.1f} %"
    data = _ruled(demand, "min_coverage", demand.min_coverage, lowest, said, undecided=not enough)
    yield data
    lacks = [] if enough else [said]
    yield from (_limited(demand, name, limit, facts, lacks) for name, limit in demand.limits)


def _falls(delta: float | None, sign: int = 1) -> bool:
    return delta is not None and sign * delta < 0


def ruled_by_agents(policy: Policy, lost: Sequence[str]) -> Iterator[RuleOutcome]:
    """Yield that agents of the baseline have nothing to be held against, where there are such."""
    if lost:
        why = f"a candidate lacks {', '.join(lost)}; name the agents that are to be compared, if that is meant"
        ruling = _UNDECIDED[policy.on_inconclusive]
        yield RuleOutcome("all", REWARD, "agents", 0, len(lost), ruling, why)


def ruled_by_damage(policy: Policy, difference: RowDifference) -> Iterator[RuleOutcome]:
    """Yield that a side's files cannot be believed, which never passes."""
    blocks = policy.on_inconclusive is OnInconclusive.BLOCK
    ruling = Ruling.BLOCK if blocks else Ruling.INCONCLUSIVE
    yield from (RuleOutcome("all", REWARD, "damage", 0, 1, ruling, why) for why in damages(difference))


def without_data(demand: Demand, why: str) -> Iterator[RuleOutcome]:
    """Yield that nothing is known of what `demand` asks."""
    for name, limit in demand.limits:
        yield _ruled(demand, name, limit, None, why, undecided=True)


def _data_rules(demand: Demand, difference: RowDifference) -> Iterator[RuleOutcome]:
    tasks = difference.scored_pairs
    told = f"{tasks} tasks are scored on both sides"
    yield _ruled(demand, "min_tasks", demand.min_tasks, tasks, told, undecided=tasks < demand.min_tasks)
    yield from (_ruled(demand, "damage", 0, 1, why, undecided=True) for why in damages(difference))
    yield from (_covered(demand, side, facts) for side, facts in sides_of(difference))
    for side, share in (("baseline", difference.shared_baseline), ("candidate", difference.shared_candidate)):
        told = f"{side}: {difference.paired.pairs} of its tasks are on both sides"
        yield _ruled(demand, "min_paired", demand.min_paired, share, told, undecided=share < demand.min_paired)
    changed = difference.paired.changed
    if changed and not demand.allow_changed_tasks:
        why = f"{changed} pairs of tasks do not say the same on both sides; allow_changed_tasks says that it is meant"
        yield _ruled(demand, "allow_changed_tasks", 0, changed, why, undecided=True)


def _covered(demand: Demand, side: str, facts: SideFacts) -> RuleOutcome:
    if not (facts.has_plan or demand.assume_complete) and demand.min_coverage > 0:
        why = f"{side}: {UNKNOWN}; `assume_complete: true` in the policy takes what is there for all"
        return _ruled(demand, "min_coverage", demand.min_coverage, None, why, undecided=True)
    told = f"{side}: {measured_of(facts)}"
    short = facts.coverage < demand.min_coverage
    return _ruled(demand, "min_coverage", demand.min_coverage, facts.coverage, told, undecided=short)


def _limited(demand: Demand, rule: str, limit: float, facts: Facts, lacks: Sequence[str]) -> RuleOutcome:
    relative = rule == "max_relative_drop"
    found = _scaled(facts.drop, facts.baseline, relative=relative)
    best = _scaled(facts.best_drop, facts.best_baseline, relative=relative)
    may_be_chance = demand.require_significance and not facts.is_significant
    if lacks and best is not None and best > limit + _ROUNDING and not may_be_chance:
        why = "even if all that is missing were the candidate's best case, it falls too far"
        return _broken(demand, rule, limit, best, why)
    if lacks or found is None:
        why = "; ".join(lacks) or "there is nothing to compare"
        return _ruled(demand, rule, limit, found, why, undecided=True)
    if found > limit + _ROUNDING:
        if may_be_chance:
            return _ruled(demand, rule, limit, found, "it falls too far, and may be chance", undecided=True)
        return _broken(demand, rule, limit, found, "it falls too far")
    worst = _scaled(None if facts.lowest is None else -facts.lowest, facts.baseline, relative=relative)
    if demand.non_inferiority and (worst is None or worst > limit + _ROUNDING):
        return _ruled(demand, rule, limit, found, "its interval reaches beyond the limit", undecided=True)
    return _ruled(demand, rule, limit, found, "within the limit", undecided=False)


def _scaled(drop: float | None, baseline: float | None, *, relative: bool) -> float | None:
    """Return a drop as it is, or as a share of the baseline's absolute value; None where there is no such share."""
    if drop is None or not relative:
        return drop
    if drop <= 0:
        return drop if not baseline else drop / abs(baseline)
    return drop / abs(baseline) if baseline else None


def _broken(demand: Demand, rule: str, limit: float, found: float, why: str) -> RuleOutcome:
    ruling = Ruling.BLOCK if demand.severity is Severity.BLOCK else Ruling.WARN
    return RuleOutcome(demand.tier.name, demand.tier.judged, rule, limit, found, ruling, why)


def _ruled(demand: Demand, rule: str, limit: float, found: float | None, why: str, *, undecided: bool) -> RuleOutcome:
    ruling = _UNDECIDED[demand.on_inconclusive] if undecided else Ruling.PASS
    return RuleOutcome(demand.tier.name, demand.tier.judged, rule, limit, found, ruling, why)
