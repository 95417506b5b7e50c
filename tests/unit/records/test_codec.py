"""Rows as the field writes them ↔ the one value that each is."""

import msgspec
import pytest

from rollbook.records.codec import (
    File,
    encode,
    is_non_superseding_rollout_row,
    is_unstarted_rollout_row,
    omitted_rollout_record,
    saved_row,
)
from rollbook.records.ending import Ending
from rollbook.records.failure_kinds import Delivery, FailureStage
from rollbook.records.identity import RolloutKey
from rollbook.records.outcome import Evidence, Failed, Interrupted, Masked, NeverStarted, Scored, Unscored
from rollbook.records.reading import read_row

WHO = {"_ng_task_index": 3, "_ng_rollout_index": 1}


def read(row, file=File.FAILURES):
    return read_row(encode(WHO | row), file)


@pytest.mark.parametrize(
    ("row", "outcome"),
    [
        ({"reward": 1.0}, Scored(1.0)),
        ({"reward": True}, Scored(1.0)),
        ({"reward": 0}, Scored(0.0)),
        ({"reward": 0.5, "mask_sample": True}, Masked(0.5)),
        ({"mask_sample": True}, Masked(None)),
        ({"reward": 0.5, "mask_sample": False}, Scored(0.5)),
        ({}, Unscored()),
        ({"reward": "high"}, Unscored()),
    ],
)
def test_a_results_row_is_scored_masked_or_unscored(row, outcome):
    assert read(row, File.RESULTS).outcome == outcome


@pytest.mark.parametrize(
    ("row", "outcome"),
    [
        (
            {"_ng_failure_class": "agent_run_error", "_ng_failure_type": "X", "_ng_failure_http_status": 500},
            Failed("agent_run_error", exception_type="X", http_status=500),
        ),
        (
            {
                "_ng_failure_class": "environment_server_failed",
                "_ng_failure_stage": "agent",
                "failure_kind": "agent_timeout",
                "_ng_failure_terminal": True,
                "_ng_failure_message": "late",
            },
            Failed("environment_server_failed", "late", "agent_timeout", FailureStage.AGENT, terminal=True),
        ),
        (
            {
                "_ng_failure_class": "cancelled",
                "_ng_no_persist": True,
                "_ng_dispatch_drained": True,
                "_ng_omitted_rollout": True,
                "_ng_failure_message": "not dispatched",
            },
            NeverStarted("not dispatched"),
        ),
        (
            {"_ng_failure_class": "kill_shaped", "_ng_no_persist": True, "_ng_omitted_rollout": True},
            Interrupted("kill_shaped", omitted=True),
        ),
        (
            {
                "_ng_failure_class": "agent_run_error",
                "_ng_no_persist": True,
                "_ng_omitted_rollout": True,
                "_ng_unrouted_run_error": True,
                "_ng_failure_message": "500",
            },
            Evidence("500"),
        ),
        ({"_ng_no_persist": True, "_ng_failure_class": "judge_failed"}, Failed("judge_failed")),
        ({"_ng_dispatch_drained": True, "_ng_failure_class": "cancelled"}, Failed("cancelled")),
        ({"_ng_failure_class": "x", "_ng_failure_stage": "nowhere"}, Failed("x")),
        ({"_ng_failure_class": "x", "_ng_failure_delivery": "not_sent"}, Failed("x", delivery=Delivery.NOT_SENT)),
    ],
)
def test_a_failures_row_is_the_ending_that_its_markers_say(row, outcome):
    assert read(row).outcome == outcome


def test_identity_and_stamps_are_read():
    record = read(
        {"_ng_attempt_index": 2, "_ng_run_id": "r", "agent_ref": {"name": "a"}, "_ng_environment_server": "e"}
    )
    assert (record.key, record.attempt, record.run_id, record.agent, record.server) == (
        RolloutKey(3, 1),
        2,
        "r",
        "a",
        "e",
    )


def test_a_row_that_names_no_rollout_is_no_record():
    with pytest.raises(msgspec.DecodeError):
        read_row(b'{"reward":1.0}', File.RESULTS)


def test_a_result_keeps_every_field_of_its_producer_and_carries_the_stamps():
    file, row = saved_row(Ending(Scored(1.0), {"reward": 1, "extra": [1], "ng_trajectory": {}}), WHO)
    assert file is File.RESULTS
    assert row == {"reward": 1, "extra": [1], "ng_trajectory": {}, **WHO}


@pytest.mark.parametrize(("failure_class", "kept"), [("judge_failed", True), ("timeout_exceeded", False)])
def test_a_failure_never_keeps_a_reward_and_keeps_a_response_only_for_a_judge(failure_class, kept):
    payload = {"_ng_failure_class": failure_class, "reward": 0.0, "response": {"output": []}, "note": "n"}
    _, row = saved_row(Ending(Failed(failure_class, "why"), payload), WHO)
    assert "reward" not in row
    assert ("response" in row) is kept
    assert row["note"] == "n"
    assert row["_ng_failure_message"] == "why"


@pytest.mark.parametrize(
    "outcome",
    [Failed("agent_run_error", "m", terminal=True), NeverStarted("why"), Interrupted("kill_shaped", "m", omitted=True)],
)
def test_what_is_written_reads_back_as_the_same_ending(outcome):
    file, row = saved_row(Ending(outcome), WHO)
    assert read_row(encode(row), file).outcome == outcome


@pytest.mark.parametrize(
    ("result", "failure_class", "message"),
    [
        ({}, "kill_shaped", "kill_shaped: the rollout produced no result"),
        ({"_ng_dispatch_drained": True, "error_message": "m"}, "cancelled", "m"),
        ({"_ng_failure_class": "own", "error": "e"}, "own", "e"),
        ({"_ng_failure_message": "first", "error_message": "second"}, "kill_shaped", "first"),
    ],
)
def test_an_omitted_row_says_why_there_is_no_result(result, failure_class, message):
    row = omitted_rollout_record(result | {"agent_ref": {"name": "a"}})
    assert (row["_ng_failure_class"], row["_ng_failure_message"]) == (failure_class, message)
    assert row["_ng_no_persist"] is True
    assert row["_ng_omitted_rollout"] is True
    assert row["agent_ref"] == {"name": "a"}
    assert "reward" not in row


def test_the_predicates_look_at_the_omission_first():
    assert not is_unstarted_rollout_row({"_ng_dispatch_drained": True})
    assert is_unstarted_rollout_row({"_ng_dispatch_drained": True, "_ng_omitted_rollout": True})
    assert is_non_superseding_rollout_row({"_ng_unrouted_run_error": True})
    assert not is_non_superseding_rollout_row({"_ng_omitted_rollout": True})


def test_a_whole_number_of_any_size_survives():
    row = {"n": 123456789012345678901234567890}
    assert msgspec.json.decode(encode(row)) == row
