"""The status file that an outer scheduler reads."""

import json

import pytest
from msgspec.structs import replace

from rollbook.records.run_status import GroupStatus, RunState
from rollbook.records.standing import Coverage
from rollbook.verbs.batch_status import (
    UNNAMED,
    Aggregation,
    AggregationFault,
    AggregationState,
    BatchState,
    IncompleteReason,
    batch_state,
    batch_status,
    faults_of,
    read_batch_status,
    superseding,
    with_aggregation,
    write_batch_status,
)
from statuses import damaged, finished, run_of_six

AT = "2026-09-20T12:00:00Z"
LATER = "2026-09-20T13:00:00Z"
PENDING = Aggregation()
SECRET = "Bearer sk-secret at http://10.0.0.7"
NINE = Coverage(
    planned=9, scored=4, masked=1, unscored=1, failed=1, interrupted=1, untouched=1, failed_by_class={"x": 1}
)


def document(status, state=BatchState.INCOMPLETE, aggregation=PENDING, **given):
    return batch_status(status, state, aggregation, updated_at=AT, **given)


def test_a_member_is_counted_so_that_its_parts_add_up_to_what_is_expected():
    status = run_of_six(groups=(GroupStatus("a", "a_env", NINE, 0.5, {"agent_timeout": 1}, final_zeros=1),))
    assert document(status)["members"] == [
        {
            "agent_ref": {"name": "a"},
            "_ng_environment_server": "a_env",
            "expected": 9,
            "completed": 5,
            "failed": 1,
            "masked": 1,
            "remaining": 2,
            "failure_classes": {"x": 1},
            "failure_kinds": {"agent_timeout": 1},
            "model_final": 1,
        }
    ]


@pytest.mark.parametrize(
    ("status", "state"),
    [
        (finished(), BatchState.COMPLETE),
        (finished(coverage=Coverage(planned=3, scored=1, masked=1, unscored=1)), BatchState.COMPLETE),
        (run_of_six(), BatchState.INCOMPLETE),
        (run_of_six(state=RunState.FINISHED), BatchState.INCOMPLETE),
        (run_of_six(state=RunState.RUNNING), BatchState.RUNNING),
        (damaged(), BatchState.DISABLED),
        (run_of_six(coverage=Coverage(planned=6, scored=9)), BatchState.DISABLED),
        (finished(state=RunState.RUNNING, coverage=Coverage(planned=1, scored=2)), BatchState.DISABLED),
    ],
)
def test_the_state_follows_from_the_counts(status, state):
    assert batch_state(status) is state


def test_rollouts_that_count_as_zero_for_good_are_complete():
    coverage = Coverage(planned=2, scored=1, failed=1)
    status = finished(coverage=coverage, groups=(GroupStatus("a", None, coverage, 1.0, final_zeros=1),))
    assert batch_state(status) is BatchState.COMPLETE


def test_a_disabled_state_holds_no_counts_and_says_when_it_was_disabled():
    told = document(damaged(), BatchState.DISABLED)
    assert told["members"] == []
    assert told["updated_at"] == AT


def test_a_run_that_was_disabled_stays_so_and_another_run_starts_anew():
    disabled = document(damaged(), BatchState.DISABLED)
    again = document(run_of_six(), BatchState.RUNNING) | {"updated_at": LATER}
    assert superseding(disabled, again) == disabled
    other = document(run_of_six(run_id="other"), BatchState.RUNNING)
    assert superseding(disabled, other) == other
    assert superseding(None, again) == again
    assert superseding(document(run_of_six(), BatchState.RUNNING), again) == again


def test_nothing_but_identities_counts_and_names_leaves_the_run():
    group = GroupStatus("a", "a_env", replace(NINE, failed_by_class={SECRET: 1}), 0.5, {SECRET: 2, "x y": 1})
    sessions = tuple(replace(session, command=SECRET, host=SECRET, how=SECRET) for session in run_of_six().sessions)
    status = run_of_six(groups=(group,), sessions=sessions, notes=(SECRET,))
    failed = Aggregation(AggregationState.FAILED, (AggregationFault("a_env", SECRET, 500),))
    told = document(status, aggregation=failed)
    assert "sk-secret" not in json.dumps(told)
    assert told["members"][0]["failure_kinds"] == {UNNAMED: 3}
    assert told["aggregation"]["errors"] == [{"server": "a_env", "type": UNNAMED, "http_status": 500}]


def test_only_an_incomplete_run_has_a_reason():
    assert document(run_of_six(), reason=IncompleteReason.INTERRUPTED)["reason"] == "interrupted"
    assert document(finished(), BatchState.COMPLETE, reason=IncompleteReason.INTERRUPTED)["reason"] is None


def test_an_aggregation_leaves_the_counts_as_they_are():
    before = document(run_of_six(), batch_manifest_sha256="ab")
    after = with_aggregation(before, Aggregation(AggregationState.SUCCEEDED), updated_at=LATER)
    assert after["aggregation"] == {"state": "succeeded", "errors": []}
    assert after["updated_at"] == LATER
    kept = before.keys() - {"aggregation", "updated_at"}
    assert {key: after[key] for key in kept} == {key: before[key] for key in kept}


def test_the_faults_of_an_aggregation_leave_out_what_the_server_said():
    entries = [
        {"_ng_environment_server": "a", "agent_metrics": {}},
        {"_ng_environment_server": "b", "aggregation_error": {"type": "E", "message": SECRET, "http_status": 500}},
        {"_ng_environment_server": "c", "aggregation_error": {"type": "E", "message": SECRET}},
    ]
    assert faults_of(entries) == (AggregationFault("b", "E", 500), AggregationFault("c", "E"))


def test_the_file_is_one_compact_line_and_reads_back(tmp_path):
    output = tmp_path / "r.jsonl"
    write_batch_status(output, document(run_of_six()))
    content = (tmp_path / "r_batch_status.json").read_bytes()
    assert content.endswith(b"}\n")
    assert content.count(b"\n") == 1
    assert read_batch_status(output) == document(run_of_six())


def test_a_disabled_file_is_not_written_over_by_the_same_run(tmp_path):
    output = tmp_path / "r.jsonl"
    write_batch_status(output, document(damaged(), BatchState.DISABLED))
    write_batch_status(output, document(run_of_six(), BatchState.RUNNING))
    assert read_batch_status(output)["state"] == "disabled"


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff"])
def test_a_file_that_cannot_be_read_is_none_and_is_written_anew(content, tmp_path):
    output = tmp_path / "r.jsonl"
    (tmp_path / "r_batch_status.json").write_bytes(content)
    assert read_batch_status(output) is None
    write_batch_status(output, document(run_of_six()))
    assert read_batch_status(output)["state"] == "incomplete"
