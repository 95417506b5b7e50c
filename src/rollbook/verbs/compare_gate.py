"""A gate's policy held against every candidate: by rows, by aggregate metrics, and together where they share a level.

Rules:
* Several candidates share one level, by metrics as by rows: p-values are adjusted over them before a rule sees one.
* Of what is missing the metrics know no more than the rows do.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from rollbook.compare.gate import RuleOutcome, metric_facts, ruled_by_metric, ruled_by_rows, without_data
from rollbook.compare.metric_difference import MetricComparison, MetricRow
from rollbook.compare.multiplicity import holm_of_known
from rollbook.compare.nearest import meant
from rollbook.compare.policy import REWARD, Demand, Tier
from rollbook.compare.row_difference import RowDifference
from rollbook.compare.side import SideFacts
from rollbook.compare.verdict import damages
from rollbook.verbs.compare_field import no_such_field
from rollbook.verbs.compare_rows import ComparedRows
from rollbook.verbs.compare_tags import no_such_tags

ByMetrics = Sequence[Sequence[MetricComparison]]
"""For each candidate its comparisons by metrics, agent by agent, in the same order for all of them."""


def gate_rules(
    demands: Sequence[Demand], rows: Sequence[ComparedRows], metrics: ByMetrics, candidates: int
) -> list[tuple[RuleOutcome, ...]]:
    """Return for each candidate what the policy's demands say of it; `rows` and `metrics` may be empty."""
    adjusted = {demand.tier.name: _adjusted(demand, metrics) for demand in demands if demand.tier.metric != REWARD}
    return [
        tuple(
            _rules(
                demands,
                rows[place] if rows else None,
                metrics[place] if metrics else (),
                {name: [each[place] for each in p_values] for name, p_values in adjusted.items()},
            )
        )
        for place in range(candidates)
    ]


def _rules(
    demands: Sequence[Demand],
    rows: ComparedRows | None,
    metrics: Sequence[MetricComparison],
    p_values: Mapping[str, Sequence[float | None]],
) -> Iterator[RuleOutcome]:
    for demand in demands:
        part = rows.parts.get(demand.tier.name) if rows else None
        if demand.tier.metric != REWARD:
            yield from _metric_rules(demand, rows, metrics, p_values[demand.tier.name])
        elif part is None:
            lack = f"no rows are compared, by which the {demand.tier.field} is judged: name runs that have theirs"
            yield from without_data(demand, f"{lack}, without --no-rows")
        elif why := _nobody(demand, rows, part.difference):
            yield from without_data(demand, why)
        else:
            yield from ruled_by_rows(demand, part.difference, part.p_value)


def _nobody(demand: Demand, rows: ComparedRows | None, part: RowDifference) -> str | None:
    """Return why nothing of either side is what a tier speaks of; None where something is."""
    tier, outputs = demand.tier, [Path(part.baseline.label), Path(part.candidate.label)]
    if rows is None or part.baseline.tasks or part.candidate.tasks:
        lacking = tier.field != REWARD and not (part.baseline.scored and part.candidate.scored)
        return no_such_field(outputs, tier.field) if lacking else None
    if not (tier.tags or tier.agent):
        return None
    agents = {name for pair in rows.whole.agents for name in pair}
    if tier.agent is not None and tier.agent not in agents:
        return f"no rollout is of the agent {tier.agent}{meant(tier.agent, agents)}"
    if not tier.tags:
        return None
    return no_such_tags(outputs, tier.tags)


def _metric_rules(
    demand: Demand,
    rows: ComparedRows | None,
    metrics: Sequence[MetricComparison],
    p_values: Sequence[float | None],
) -> Iterator[RuleOutcome]:
    tier, found = demand.tier, False
    damaged = tuple(damages(rows.whole.difference)) if rows else ()
    if damaged:
        yield from without_data(demand, "; ".join(damaged))
        return
    for comparison, p_value in zip(metrics, p_values, strict=True):
        row = _row(comparison, tier.metric)
        if row is None or tier.agent not in {None, comparison.baseline_agent, comparison.candidate_agent}:
            continue
        found = True
        coverage = _coverage(demand, comparison, rows.whole.difference if rows else None)
        yield from ruled_by_metric(demand, metric_facts(row, demand, p_value), coverage)
    if not found:
        yield from without_data(demand, _no_such_metric(tier, metrics))


def _no_such_metric(tier: Tier, metrics: Sequence[MetricComparison]) -> str:
    agents = {name for one in metrics for name in (one.baseline_agent, one.candidate_agent)}
    if tier.agent is not None and tier.agent not in agents:
        return f"no metrics are of the agent {tier.agent}{meant(tier.agent, agents)}"
    names = {row.name for comparison in metrics for row in comparison.metrics}
    near = "" if tier.metric in names else meant(tier.metric, {*names, REWARD})
    return f"the metric {tier.metric} is not on both sides{near}"


def _adjusted(demand: Demand, metrics: ByMetrics) -> list[list[float | None]]:
    """Return for each agent the p-value of each candidate, adjusted for there being several."""
    found = []
    for comparisons in zip(*metrics, strict=True):
        rows = [_row(comparison, demand.tier.metric) for comparison in comparisons]
        found.append(holm_of_known([row.welch.p_value if row and row.welch else None for row in rows]))
    return found


def _row(comparison: MetricComparison, name: str) -> MetricRow | None:
    return next((row for row in comparison.metrics if row.name == name and row.delta is not None), None)


def _coverage(
    demand: Demand, comparison: MetricComparison, difference: RowDifference | None
) -> tuple[float | None, ...]:
    """Return what each side covers: what the metrics say of it, and no more than its rows do."""
    if difference is None:
        return comparison.coverage
    sides = (difference.baseline, difference.candidate)
    return tuple(_least(demand, told, side) for told, side in zip(comparison.coverage, sides, strict=True))


def _least(demand: Demand, told: float | None, side: SideFacts) -> float | None:
    if not (side.has_plan or demand.assume_complete):
        return None
    return side.coverage if told is None else min(told, side.coverage)
