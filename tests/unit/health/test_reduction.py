"""Records → verdicts in order, copies, tasks and counts."""

import json
from collections import Counter
from random import Random

import pytest

from evidence_rows import failed, gap, line, row, with_trajectory, without_evidence
from rollbook.health.batch import Columns, examined_batch
from rollbook.health.checks import EXECUTION_ERROR, mask_of
from rollbook.health.examine import examine
from rollbook.health.finding import Verdict
from rollbook.health.reduction import Reduction, in_order
from rollbook.health.summary import Accounting, Health, Limits
from rollbook.health.tally import Tally
from rollbook.health.tasks import Repeat, consistently_unhealthy, no_successful_calls, one_repeat

HEALTHY, UNHEALTHY, UNOBSERVED = Verdict.HEALTHY, Verdict.UNHEALTHY, Verdict.UNOBSERVED


def reduced(records, ignored=()):
    """Return the verdict lines, the task entries and the health of `records` (or lines)."""
    mask = mask_of(ignored)
    texts = [record if isinstance(record, bytes) else line(record) for record in records]
    batch = examined_batch(enumerate(texts, start=1), 0, 0, mask)
    columns = Columns()
    columns.extend(batch)
    ends = [sum(columns.lengths[: place + 1]) for place in range(len(columns))]
    lines, tasks = [], []
    reduction = Reduction(columns, lambda place: batch.told[ends[place] - columns.lengths[place] : ends[place]], mask)
    counts = reduction.write(lines.append, tasks.append)
    health = Health(counts, batch.tally, tuple(ignored), Accounting(), (), Limits())
    return [json.loads(text) for text in lines], json.loads(b"{" + b",".join(tasks) + b"}"), health


def unwell(task=0, rollout=0):
    return with_trajectory(turns=[]) | {"_ng_task_index": task, "_ng_rollout_index": rollout}


def test_verdicts_come_by_task_rollout_and_stage_in_whatever_order_the_records_came():
    records = [row(10, 0), row(2, 1), row(2, 0, stage_index=1), row(2, 0, stage_index=0), b"broken"]
    lines, _, _ = reduced(records)
    assert [(v["_ng_task_index"], v["_ng_rollout_index"], v.get("stage_index")) for v in lines] == [
        (2, 0, 0),
        (2, 0, 1),
        (2, 1, None),
        (10, 0, None),
        ("__unreadable_record__:input-0:line-5", 0, None),
    ]


def test_every_copy_of_a_repeat_is_flagged_and_the_repeat_counts_once():
    lines, tasks, _ = reduced([row(0, 0), row(0, 1), row(0, 0)])
    assert [[found["check"] for found in v["findings"]] for v in lines] == [
        ["rollout_duplicate_identity"],
        ["rollout_duplicate_identity"],
        [],
    ]
    assert tasks["0"] | {"flags": []} == {"repeats": 2, "healthy": 1, "unhealthy": 1, "unobserved": 0, "flags": []}


def attempt(number, record):
    return record | {"_ng_run_id": "r", "_ng_attempt_index": number}


def test_a_result_whose_place_a_later_attempt_took_is_no_copy_and_says_nothing_of_the_repeat():
    lines, tasks, _ = reduced([attempt(0, unwell()), attempt(2, row()), attempt(1, unwell())])
    found = [[finding["check"] for finding in verdict["findings"]] for verdict in lines]
    assert [checks.count("rollout_duplicate_identity") for checks in found] == [0, 0, 0]
    assert tasks["0"]["healthy"] == tasks["0"]["repeats"] == 1


def test_two_results_of_one_attempt_are_copies_and_a_number_counts_only_in_a_named_run():
    lines, _, _ = reduced([attempt(1, row()), attempt(1, row()), attempt(0, row())])
    assert [len(verdict["findings"]) for verdict in lines] == [1, 1, 0]
    lines, _, _ = reduced([row(_ng_attempt_index=0), row(_ng_attempt_index=1)])
    assert [len(verdict["findings"]) for verdict in lines] == [1, 1]


def test_the_same_repeat_of_another_stage_is_no_copy():
    _, _, health = reduced([row(0, 0, stage_index=0), row(0, 0, stage_index=1)])
    assert health.counts.verdicts == Counter({HEALTHY: 2})


def test_of_a_record_that_cannot_be_read_it_is_not_said_that_it_is_a_copy():
    lines, _, _ = reduced([row(), row() | {"ng_trajectory": "no trajectory"}])
    assert [[found["check"] for found in v["findings"]] for v in lines] == [
        ["rollout_duplicate_identity"],
        ["record_unreadable"],
    ]
    assert "rollout_duplicate_identity" in lines[1]["unobserved"]


def test_copies_that_disagree_are_one_unobserved_repeat():
    ignored = ["rollout_duplicate_identity"]
    _, tasks, _ = reduced([row(), unwell()], ignored)
    assert tasks["0"]["unobserved"] == 1


def test_records_without_a_task_index_are_tasks_of_their_own_by_their_ordinal():
    lines, _, _ = reduced([row(5), {"reward": 1.0}, {"_ng_task_index": "x"}, {"_ng_task_index": -1}])
    assert [v["_ng_task_index"] for v in lines] == [1, 2, 3, 5]


@pytest.mark.parametrize(
    ("record", "name"),
    [
        (row(3, 1, _ng_rollout_id="mine", ng_trajectory=None), "mine"),
        (row(3, 1), "0-0"),
        (row(3, 1, ng_trajectory=None), "3-1"),
    ],
)
def test_a_rollout_is_named_by_its_own_id_then_by_its_trajectory_then_by_its_indices(record, name):
    lines, _, _ = reduced([record])
    assert lines[0]["rollout_id"] == name


def test_issues_and_coverage_count_records_and_for_the_checks_of_tasks_tasks():
    _, _, health = reduced([unwell(0, 0), unwell(0, 1), row(1), without_evidence(2)])
    issues, coverage = health.counts.issues(), health.counts.coverage(0)
    assert issues["rollout_missing_agent_turns"] == 2
    assert issues["task_consistently_unhealthy"] == 1
    assert coverage["rollout_missing_agent_turns"] == {"evaluated": 3, "unobserved": 1, "ignored": 0}
    assert coverage["task_consistently_unhealthy"] == {"evaluated": 1, "unobserved": 2, "ignored": 0}


def test_an_ignored_check_is_counted_as_ignored_alone():
    _, _, health = reduced([unwell()], ["rollout_missing_agent_turns"])
    assert health.run_json()["artifacts"]["coverage"]["rollout_missing_agent_turns"] == {
        "evaluated": 0,
        "unobserved": 0,
        "ignored": 1,
    }
    assert health.counts.issues()["rollout_missing_agent_turns"] == 0


def repeats(*verdicts, is_bound=True, has_success=True):
    return [Repeat(verdict, is_bound, has_success) for verdict in verdicts]


@pytest.mark.parametrize(
    ("verdicts", "said"),
    [
        ([UNHEALTHY, UNHEALTHY], True),
        ([UNHEALTHY, UNHEALTHY, UNOBSERVED], True),
        ([UNHEALTHY, HEALTHY], False),
        ([UNHEALTHY, UNOBSERVED], None),
        ([UNHEALTHY], None),
    ],
)
def test_a_task_is_consistently_unhealthy_when_two_or_more_repeats_are_and_none_is_well(verdicts, said):
    assert consistently_unhealthy(repeats(*verdicts)) is said


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (repeats(HEALTHY, has_success=False), True),
        (repeats(HEALTHY, has_success=False) + repeats(HEALTHY), False),
        (repeats(HEALTHY, has_success=False) + repeats(HEALTHY, is_bound=False), None),
    ],
)
def test_a_task_has_no_successful_calls_when_all_are_known_and_none_succeeded(given, said):
    assert no_successful_calls(given) is said


def test_one_copy_whose_calls_are_not_known_leaves_its_repeat_without_them():
    assert one_repeat(repeats(HEALTHY) + repeats(HEALTHY, is_bound=False)).is_bound is False


def test_a_task_whose_every_call_failed_is_flagged():
    _, tasks, _ = reduced([with_trajectory(model_calls=[failed()])])
    assert tasks["0"]["flags"] == ["task_no_successful_model_calls"]


def test_calls_that_failed_and_calls_that_were_recorded_twice_are_summed():
    twice = row(1, ng_model_call_capture={"calls": [{"model_call_id": "c1"}, {"model_call_id": "c1"}]})
    _, _, health = reduced([with_trajectory(model_calls=[failed()]), twice, gap("turns_unavailable")])
    stats = health.run_json()["stats"]
    assert stats["model_call_errors"] == {
        "total": 1,
        "by_status": {"500": 1},
        "rollouts_affected": 1,
        "ended_on_error": 1,
    }
    assert stats["duplicated_calls"] == {"replayed": 1, "rollouts": 1}
    assert stats["tokens"] == {"prompt": 9, "completion": 6, "capture_prompt": 9, "capture_completion": 6}


@pytest.mark.parametrize(
    ("members", "kinds"),
    [
        ({"timeouts": [{"type": "tool_timeout"}, {"kind": "agent"}]}, {"agent": 1, "tool_timeout": 1}),
        ({"failure_kind": "agent_timeout"}, {"agent_timeout": 1}),
        ({"timed_out": True}, {"timed_out": 1}),
        ({"timeouts": [], "elapsed_seconds": 1e6}, {}),
        ({"timed_out": "no"}, {}),
    ],
)
def test_a_timeout_is_an_event_that_a_record_tells_and_never_a_duration(members, kinds):
    _, _, health = reduced([without_evidence(**members)])
    assert health.run_json()["stats"]["timeouts"]["by_kind"] == kinds


def test_the_time_of_a_rollout_that_ran_into_a_limit_is_split_by_where_it_went():
    calls = {
        "calls": [
            {"model_call_id": "a", "model_ref": {"name": "policy"}, "latency_total_ms": 1500},
            {"model_call_id": "b", "model_ref": {"name": "judge"}, "latency_total_ms": 250},
        ]
    }
    tools = [{"status": "timeout", "duration_ms": 4000}]
    record = with_trajectory(model_calls=[], turns=[], invocations=[], tool_calls=tools)
    record |= {"ng_model_call_capture": calls, "ng_policy_model_server": "policy", "timeouts": ["wall_clock"]}
    _, _, health = reduced([record])
    assert health.run_json()["stats"]["timeouts"]["seconds"] == {
        "policy_model": 1.5,
        "other_models": 0.25,
        "tools": 4.0,
    }


def test_a_check_that_raises_is_a_finding_and_the_other_checks_still_run():
    def broken(_seen):
        raise KeyError("x")

    examined = examine(line(row()), 0, Tally(), [("agent_turn_hollow", broken)])
    assert [(found.check, dict(found.detail)) for found in examined.findings] == [
        (EXECUTION_ERROR, {"failed_check": "agent_turn_hollow", "error_type": "KeyError"})
    ]


IDLE = {"response": {"output": [], "usage": {"input_tokens": 0, "output_tokens": 0}}}
WRONG = {"response": {"output": [{"type": "message"}], "usage": {"input_tokens": 5, "output_tokens": 1}}}


@pytest.mark.parametrize(
    ("records", "found"),
    [
        ([without_evidence(0, **IDLE), without_evidence(1, **IDLE)], ["run_model_never_used"]),
        ([without_evidence(0, **IDLE), without_evidence(1, response={})], ["run_model_never_used"]),
        ([without_evidence(0, **IDLE), without_evidence(1, **WRONG)], []),
        ([without_evidence(0, **WRONG)], []),
        ([without_evidence(0)], []),
        ([b"broken"], []),
    ],
)
def test_a_run_is_flagged_in_which_no_rollout_used_the_model(records, found):
    _, _, health = reduced(records)
    assert [finding.check for finding in health.findings()] == found


@pytest.mark.parametrize(
    ("limits", "exceeded"),
    [
        (Limits(), []),
        (Limits(unhealthy=0.25), []),
        (Limits(unhealthy=0.24), ["max_unhealthy_fraction"]),
        (Limits(failed=0.2, missing=0.5), ["max_failed_fraction"]),
    ],
)
def test_a_limit_is_a_share_of_the_expected_rollouts(limits, exceeded):
    _, _, told = reduced([unwell()])
    health = Health(told.counts, Tally(), (), Accounting(expected=4, failed=2, missing=2, final_zeros=1), (), limits)
    assert [finding.detail["limit"] for finding in health.findings()] == exceeded


@pytest.mark.parametrize("order", ["shuffled", "repeat by repeat", "one rollout only"])
def test_the_places_of_very_many_records_are_in_order_and_copies_as_they_came(order):
    columns = Columns()
    triples = [(task, rollout, rollout % 2 - 1) for rollout in range(4) for task in range(20_000)]
    if order == "shuffled":
        Random(4).shuffle(triples)  # noqa: S311  any order will do
    if order == "one rollout only":
        triples = [(5, 1, -1)] * 70_000 + [(0, 0, -1)]
    for name, values in zip(("tasks", "rollouts", "stages"), zip(*triples, strict=True), strict=True):
        getattr(columns, name).extend(values)
    assert list(in_order(columns)) == sorted(range(len(triples)), key=triples.__getitem__)
