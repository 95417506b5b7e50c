"""A comparison for programs: one document, its `schema_version` "1".

Rules:
* What is undefined, and what is larger than any number, is null; no key comes and goes with the data.
* `comparisons` are those of aggregate metrics, one for each candidate and agent; `rows` are one for each candidate.

Source: collection.md §9.2.
"""

import math
from dataclasses import asdict

from rollbook.compare.comparison import SCHEMA_VERSION, Candidate, Comparison, RowComparison
from rollbook.compare.flips import Change, Flips
from rollbook.compare.metric_difference import Ends, MetricComparison, MetricRow
from rollbook.compare.row_difference import RowDifference
from rollbook.compare.side import SideFacts
from rollbook.records.json_values import JsonObject
from rollbook.report.compare_words import notes_of


def compare_json(comparison: Comparison) -> JsonObject:
    """Return the comparison as a document."""
    candidates = comparison.candidates
    return _finite(
        {
            "schema_version": SCHEMA_VERSION,
            "baseline": comparison.baseline,
            "candidates": [candidate.label for candidate in candidates],
            "comparisons": [_metrics(candidate, part) for candidate in candidates for part in candidate.metrics],
            "rows": [_rows(candidate.label, candidate.rows) for candidate in candidates if candidate.rows],
            "skipped_agents": list(comparison.skipped_agents),
            "warnings": notes_of(comparison),
            "alpha": comparison.alpha,
            "min_coverage": comparison.min_coverage,
            "gate": _gate(comparison),
            "exit_code": comparison.exit_code,
        }
    )


def _finite(value: JsonObject) -> JsonObject:
    return {key: _written(each) for key, each in value.items()}


def _written(value: object) -> object:
    if isinstance(value, dict):
        return _finite(value)
    if isinstance(value, list | tuple):
        return [_written(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _metrics(candidate: Candidate, comparison: MetricComparison) -> JsonObject:
    return {
        "candidate": candidate.label,
        "baseline_agent": comparison.baseline_agent,
        "candidate_agent": comparison.candidate_agent,
        "metrics": [_metric(row) for row in comparison.metrics],
        "flips": _flips(comparison.flips),
        "warnings": list(comparison.warnings),
    }


def _metric(row: MetricRow) -> JsonObject:
    return {
        "metric": row.name,
        "baseline": row.baseline,
        "baseline_ci_95": _ends(row.baseline_interval),
        "candidate": row.candidate,
        "candidate_ci_95": _ends(row.candidate_interval),
        "delta": row.delta,
        "delta_percent": row.percent,
        "delta_ci_95": _ends(row.delta_interval),
    }


def _ends(interval: Ends) -> list[float] | None:
    return None if interval is None else list(interval)


def _flips(flips: Flips) -> JsonObject:
    return {
        "kind": flips.kind,
        "tasks": flips.tasks,
        "regressed": flips.regressed,
        "improved": flips.improved,
        "tied": flips.tied,
        "listed": [_change(change) for change in flips.listed],
    }


def _change(change: Change) -> JsonObject:
    return {**asdict(change), "delta": change.delta}


def _rows(label: str, rows: RowComparison) -> JsonObject:
    return {
        "candidate": label,
        "agents": [{"baseline": ours, "candidate": theirs} for ours, theirs in rows.agents],
        "verdict": rows.judgement.verdict.value,
        "p_value": rows.judgement.p_value,
        "lacking": list(rows.judgement.lacking),
        **_difference(rows.difference),
        "transitions": [
            {"baseline": before, "candidate": after, "rollouts": count}
            for (before, after), count in rows.transitions.items()
        ],
        "flips": _flips(rows.flips),
        "notes": list(rows.notes),
    }


def _difference(found: RowDifference) -> JsonObject:
    return {
        "baseline_mean": found.baseline_mean,
        "candidate_mean": found.candidate_mean,
        "difference": found.difference,
        "standard_error": found.standard_error,
        "interval": asdict(found.interval),
        "bounds": None if found.bounds is None else [found.bounds.low, found.bounds.high],
        "test": asdict(found.test),
        "detectable": found.detectable,
        "largest_possible": found.largest,
        "needed": asdict(found.needed),
        "paired": asdict(found.paired) | {"scored_pairs": found.scored_pairs},
        "sides": {"baseline": _side(found.baseline), "candidate": _side(found.candidate)},
    }


def _side(side: SideFacts) -> JsonObject:
    coverage = side.coverage if side.has_plan else None
    return asdict(side) | {"scored": side.scored, "coverage": coverage}


def _gate(comparison: Comparison) -> JsonObject | None:
    if comparison.ruling is None:
        return None
    return {
        "policy": comparison.policy,
        "ruling": comparison.ruling.value,
        "candidates": [
            {
                "candidate": candidate.label,
                "ruling": candidate.ruling.value if candidate.ruling else None,
                "rules": [asdict(rule) for rule in candidate.rules],
            }
            for candidate in comparison.candidates
        ],
    }
