"""Scores as JSON: the report for programs, with the numbers unrounded.

Rules:
* What is undefined is null; no key comes and goes with the data.
* Every score carries its own coverage.

Source: collection.md §1.12; case RC-71.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec
from msgspec.structs import asdict

from rollbook.records.headline import Headline
from rollbook.records.json_values import JsonObject
from rollbook.records.standing import Coverage
from rollbook.report.shapes import VERSION, both_coverages, files_json
from rollbook.scoring.tally import AgentScore, RunScores
from rollbook.scoring.worst_tasks import MOST, TaskScore

WORST_LISTED: Final = MOST


def json_report(scores: RunScores, coverage: Coverage, files: Mapping[str, Path]) -> JsonObject:
    """Return the report as JSON values; pass@k is a fraction, `worst_tasks` holds up to `WORST_LISTED` tasks."""
    return VERSION | {
        "coverage": both_coverages(coverage),
        "exported": dict(scores.exported),
        "warnings": list(scores.warnings),
        "agents": [_agent(score, scores.headline(score)) for score in scores.agents],
        "retries": [msgspec.to_builtins(bias) | {"is_clear": bias.is_clear} for bias in scores.retries],
        "worst_tasks": [_task(score) for score in scores.worst_tasks(WORST_LISTED)],
        "files": files_json(files),
    }


def _agent(score: AgentScore, headline: Headline) -> JsonObject:
    return {
        "agent": score.agent,
        "tasks": score.tasks,
        "scored_tasks": score.scored_tasks,
        "mean_reward": score.mean,
        "standard_error": score.standard_error,
        "headline": headline.to_json(),
        "pass_at_k": [asdict(estimate) for estimate in score.pass_at_k],
        "coverage": both_coverages(score.coverage),
    }


def _task(score: TaskScore) -> JsonObject:
    return {
        "agent": score.agent,
        "task": score.task,
        "mean_reward": score.mean,
        "coverage": both_coverages(score.coverage),
    }
