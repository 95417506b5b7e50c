"""Reply → row → record, for each row of the field's tables: collection.md §4.1, §4.2, §4.6, §4.9, §4.12, §21.1."""

import msgspec
import pytest

from rollbook.records.codec import RunStamp, encode, omitted_rollout_record, saved_row
from rollbook.records.ending import Ending
from rollbook.records.failure_kinds import Delivery
from rollbook.records.outcome import Evidence, Failed, Interrupted, Masked, NeverStarted, Scored, Unscored
from rollbook.records.place import File
from rollbook.records.reading import read_row
from rollbook.records.reply_codec import ending_of_payload

WHO = {"_ng_task_index": 3, "_ng_rollout_index": 1}
RUN = RunStamp("r", 3)
ANSWER = {"output": [{"type": "message"}]}
CLASS = {"_ng_failure_class": "own"}


@pytest.mark.parametrize("run", [None, RUN], ids=["without a run id", "managed"])
@pytest.mark.parametrize(
    ("reply", "file", "outcome"),
    [
        pytest.param({"reward": 1}, File.RESULTS, Scored, id="no marker"),
        pytest.param({"reward": 1, "mask_sample": True}, File.RESULTS, Masked, id="no marker, masked"),
        pytest.param({"answer": 1}, File.RESULTS, Unscored, id="no marker and no reward"),
        pytest.param({"reward": 1, "failure_kind": "x"}, File.RESULTS, Scored, id="a kind is no marker"),
        pytest.param(CLASS | {"reward": 0}, File.FAILURES, Failed, id="class alone"),
        pytest.param(CLASS | {"_ng_failure_terminal": True}, File.FAILURES, Failed, id="class and terminal"),
        pytest.param({"_ng_no_persist": True}, File.FAILURES, Interrupted, id="no-persist"),
        pytest.param(CLASS | {"_ng_no_persist": True}, File.FAILURES, Interrupted, id="no-persist under another class"),
        pytest.param(
            {"_ng_dispatch_drained": True, "reward": 1}, File.RESULTS, Scored, id="a collector's key is dropped"
        ),
        pytest.param({"_ng_omitted_rollout": True, "reward": 1}, File.RESULTS, Scored, id="another one is dropped"),
    ],
)
def test_a_reply_goes_where_its_markers_say_and_reads_back_as_the_same_ending(reply, file, outcome, run):
    ending = ending_of_payload(reply)
    assert isinstance(ending.outcome, outcome)
    where, row = saved_row(ending, WHO, run)
    assert where is file
    read = read_row(encode(row), where)
    assert type(read.outcome) is outcome
    assert read.run_id == (run and run.run_id)


def test_an_interruption_of_a_managed_run_is_a_kill_shaped_failure_row_and_no_omitted_one():
    _, row = saved_row(ending_of_payload(CLASS | {"_ng_no_persist": True, "reward": 1.0, "note": "n"}), WHO, RUN)
    kept = ("_ng_failure_class", "_ng_failure_legacy_class", "_ng_no_persist", "_ng_run_id", "note")
    assert [row[key] for key in kept] == ["kill_shaped", "own", True, "r", "n"]
    assert "_ng_omitted_rollout" not in row
    assert "reward" not in row
    _, omitted = saved_row(ending_of_payload(CLASS | {"_ng_no_persist": True}), WHO)
    assert (omitted["_ng_failure_class"], omitted["_ng_omitted_rollout"]) == ("own", True)


@pytest.mark.parametrize(
    ("missing", "outcome"),
    [(None, Interrupted), ("_ng_run_id", Failed), ("_ng_no_persist", Failed), ("_ng_failure_class", Failed)],
)
def test_a_saved_interruption_takes_its_class_its_marker_and_a_run_id(missing, outcome):
    row = WHO | {"_ng_failure_class": "kill_shaped", "_ng_no_persist": True, "_ng_run_id": "r"}
    row = {key: value for key, value in row.items() if key != missing}
    assert type(read_row(encode(row), File.FAILURES).outcome) is outcome


@pytest.mark.parametrize(
    ("said", "delivery"),
    [({}, Delivery.POSSIBLY_DELIVERED), ({"_ng_failure_delivery": "not_sent"}, Delivery.NOT_SENT)],
)
def test_an_interruption_that_does_not_say_how_far_it_came_may_have_been_delivered(said, delivery):
    _, row = saved_row(ending_of_payload({"_ng_no_persist": True} | said), WHO, RUN)
    assert read_row(encode(row), File.FAILURES).outcome.delivery is delivery


def test_the_row_of_a_judge_failure_keeps_the_response_and_drops_the_reward():
    judged = {"_ng_failure_class": "judge_failed", "reward": 0.0, "mask_sample": True, "response": ANSWER}
    _, row = saved_row(ending_of_payload(judged | {"_ng_failure_judge_error": "late"}), WHO, RUN)
    assert row["response"] == ANSWER
    assert row["_ng_failure_judge_error"] == "late"
    assert "reward" not in row
    assert read_row(encode(row), File.FAILURES).outcome.saved_answer


@pytest.mark.parametrize(
    ("row", "kept"),
    [
        ({"response": ANSWER}, True),
        ({"response": {"output": []}}, False),
        ({"response": "text"}, False),
        ({"deliverables_dir": "d"}, True),
        ({"deliverables_dir": ""}, False),
        ({}, False),
    ],
)
def test_an_answer_is_kept_where_there_is_an_output_item_or_a_folder(row, kept):
    assert read_row(encode(WHO | CLASS | row), File.FAILURES).outcome.saved_answer is kept


@pytest.mark.parametrize(
    ("row", "facts"),
    [
        ({"_ng_failure_counts_as_zero": True}, (True, False, None)),
        ({"_ng_failure_counts_as_zero": True, "_ng_failure_terminal": True}, (True, True, None)),
        ({"_ng_failure_legacy_class": "old"}, (False, False, "old")),
    ],
)
def test_a_record_carries_what_decides_whether_a_failure_counts_as_zero(row, facts):
    outcome = read_row(encode(WHO | CLASS | row), File.FAILURES).outcome
    assert (outcome.counts_as_zero, outcome.terminal, outcome.legacy_class) == facts


@pytest.mark.parametrize(
    "ending",
    [
        Ending(Scored(1.0), {"reward": 1.0, "own": {"deep": [1, None, "é"]}, "_unknown": 1}),
        Ending(Failed("own"), {"own": {"deep": [1, None, "é"]}, "_unknown": 1}),
        Ending(Interrupted("own"), {"own": {"deep": [1, None, "é"]}, "_unknown": 1}),
    ],
    ids=lambda ending: type(ending.outcome).__name__,
)
def test_unknown_keys_survive_a_round_trip(ending):
    for run in (None, RUN):
        row = msgspec.json.decode(encode(saved_row(ending, WHO, run)[1]))
        assert (row["own"], row["_unknown"]) == ({"deep": [1, None, "é"]}, 1)


@pytest.mark.parametrize(
    "outcome", [NeverStarted("not dispatched: budget"), Evidence("500")], ids=["drained", "evidence"]
)
def test_an_omitted_row_of_a_run_has_no_reward_and_no_cap(outcome):
    _, row = saved_row(Ending(outcome), WHO, RUN)
    assert row["_ng_no_persist"] is row["_ng_omitted_rollout"] is True
    assert not {"reward", "_ng_failure_max_attempts", "rollout_failure"} & row.keys()
    assert read_row(encode(row), File.FAILURES).outcome == outcome


def test_an_omitted_row_is_a_copy_and_its_message_is_the_first_reason_that_says_something():
    result = {"_ng_failure_message": "", "error_message": None, "error": "e", "note": 1}
    row = omitted_rollout_record(result)
    assert (row["_ng_failure_message"], row["_ng_failure_class"], row["note"]) == ("e", "kill_shaped", 1)
    assert "_ng_omitted_rollout" not in result
