"""How a run is, for programs: one document for one run or for many, with the numbers that a chain of jobs needs.

Rules:
* What is undefined is null; no key comes and goes with the data.
* `outstanding` is what a resume would run: inputs = succeeded + terminal + at_cap + held + in_flight + outstanding.
* `recovery` counts the plan in the field's own words, each rollout once.

Source: collection.md §9.3, §20(10); case RC-21.
"""

import os
from collections.abc import Mapping, Sequence
from typing import Final

from msgspec.structs import asdict

from rollbook.records.headline import Headline
from rollbook.records.json_values import JsonObject
from rollbook.records.run_status import (
    GroupStatus,
    RunState,
    RunStatus,
    counted,
    exit_code,
    exit_code_of_all,
    summed,
)
from rollbook.records.standing import Coverage
from rollbook.report.shapes import VERSION, both_coverages
from rollbook.scoring.tally import NO_AGENT

_GRAVEST_FIRST: Final = (RunState.DAMAGED, RunState.RUNNING, RunState.INTERRUPTED, RunState.FINISHED)


def status_json(statuses: Sequence[RunStatus], *, require_complete: bool) -> JsonObject:
    """Return the runs one by one under `runs`, and beside it the same numbers summed."""
    return VERSION | {
        "state": _state_of_all(statuses),
        "exit_code": exit_code_of_all(statuses, require_complete=require_complete),
        **_counts(
            summed([status.coverage for status in statuses]),
            counted(status.owed_by for status in statuses),
            counted(status.not_owed_by for status in statuses),
            sum(status.final_zeros for status in statuses),
        ),
        "runs": [_run(status, require_complete=require_complete) for status in statuses],
    }


def recovery(coverage: Coverage, final_zeros: int) -> dict[str, int]:
    """Return the plan counted in the words by which the field's launchers decide what to do next.

    `missing` has nothing on disk that says how it ended, `omitted` ended without a result or was not sent, and
    `judge_recoverable` failed with an answer that can be judged again. `unscored` is ours: a result without a reward.
    """
    return {
        "scored": coverage.scored,
        "masked": coverage.masked,
        "unscored": coverage.unscored,
        "model_final": final_zeros,
        "terminal": coverage.settled - final_zeros,
        "exhausted": coverage.exhausted,
        "judge_recoverable": coverage.held,
        "retryable": coverage.retryable,
        "omitted": coverage.interrupted + coverage.never_started,
        "missing": coverage.untouched + coverage.in_flight,
    }


def _counts(
    coverage: Coverage, owed_by: Mapping[str, int], not_owed_by: Mapping[str, int], final_zeros: int
) -> JsonObject:
    return {
        "inputs": coverage.planned,
        "expected": coverage.planned,
        "succeeded": coverage.settled_with_result - coverage.approved,
        "terminal": coverage.settled,
        "at_cap": coverage.exhausted,
        "held": coverage.held + coverage.held_interrupted,
        "in_flight": coverage.in_flight,
        "outstanding": coverage.owed,
        "owed_by": dict(owed_by),
        "not_owed_by": dict(not_owed_by),
        "law_holds": coverage.law_holds,
        "coverage": both_coverages(coverage),
        "recovery": recovery(coverage, final_zeros),
    }


def _run(status: RunStatus, *, require_complete: bool) -> JsonObject:
    return {
        "output": os.fspath(status.output),
        "run_id": status.run_id,
        "managed": status.managed,
        "has_plan": status.has_plan,
        "run_elsewhere": status.run_elsewhere,
        "state": status.state.value,
        "exit_code": exit_code(status, require_complete=require_complete),
        **_counts(status.coverage, status.owed_by, status.not_owed_by, status.final_zeros),
        "agents": [_group(group, status.headlines.get(group.agent or NO_AGENT)) for group in status.groups],
        "sessions": [asdict(session) for session in status.sessions],
        "attempts": status.attempts,
        "refused": status.refused,
        "cap": status.cap,
        "started_at": status.started_at,
        "elapsed_s": status.elapsed_s,
        "tokens": None if status.tokens is None else dict(status.tokens),
        "damage": [asdict(damage) for damage in status.damage],
        "notes": list(status.notes),
    }


def _group(group: GroupStatus, headline: Headline | None) -> JsonObject:
    return {
        "agent": group.agent,
        "server": group.server,
        "mean_reward": group.mean_reward,
        "headline": None if headline is None else headline.to_json(),
        "coverage": both_coverages(group.coverage),
        "failure_kinds": dict(group.failure_kinds),
        "final_zeros": group.final_zeros,
    }


def _state_of_all(statuses: Sequence[RunStatus]) -> str | None:
    found = {status.state for status in statuses}
    return next((state.value for state in _GRAVEST_FIRST if state in found), None)
