import json

import pytest
from pydantic import ValidationError

from rollbook.records.rejudgment import (
    COUNTS_AS_ZERO_ROW_KEY,
    NG_FAILURE_ID_KEY,
    REJUDGE_OPERATION_ID_KEY,
    REJUDGED_FAILURE_ID_KEY,
    REJUDGED_OBSERVATIONS_KEY,
    RESULT_PREDECESSOR_PREFIX,
    RejudgeAdmission,
    holds_saved_answer,
    is_interruption_failure,
    is_rejudgment_failure_of,
    is_rejudgment_of,
    rejudge_predecessor_id,
    row_sha256,
)

ANSWER = {"output": [{"type": "message", "content": "42"}]}
KEY = {"_ng_task_index": 3, "_ng_rollout_index": 1, "_ng_attempt_index": 2, "_ng_run_id": "r1"}
JUDGE_FAILURE = KEY | {"_ng_failure_class": "judge_failed", NG_FAILURE_ID_KEY: "f7", "response": ANSWER}
MASKED = KEY | {"reward": 0.0, "mask_sample": True, "response": ANSWER}
REJUDGED = KEY | {"reward": 1.0, "response": ANSWER, REJUDGED_FAILURE_ID_KEY: "f7"}
FAILED_AGAIN = JUDGE_FAILURE | {NG_FAILURE_ID_KEY: "f8", REJUDGED_FAILURE_ID_KEY: "f7"}
ADMISSION = {
    "operation_id": "op1",
    "identity": "3-1",
    "attempt": 2,
    "predecessor_id": "f7",
    "predecessor_sha256": "ab" * 32,
    "admitted_at": "2026-09-20T10:00:00Z",
}


def test_the_keys_are_the_fields_own():
    assert (
        NG_FAILURE_ID_KEY,
        REJUDGED_FAILURE_ID_KEY,
        REJUDGED_OBSERVATIONS_KEY,
        REJUDGE_OPERATION_ID_KEY,
        RESULT_PREDECESSOR_PREFIX,
        COUNTS_AS_ZERO_ROW_KEY,
    ) == (
        "_ng_failure_id",
        "_ng_rejudged_failure_id",
        "_ng_rejudged_failure_observations",
        "_ng_rejudge_operation_id",
        "result-sha256:",
        "_ng_failure_counts_as_zero",
    )


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        (JUDGE_FAILURE, "f7"),
        (MASKED | {NG_FAILURE_ID_KEY: "f9"}, "f9"),
        (MASKED, RESULT_PREDECESSOR_PREFIX + row_sha256(MASKED)),
        ({key: value for key, value in JUDGE_FAILURE.items() if key != NG_FAILURE_ID_KEY}, None),
        (JUDGE_FAILURE | {NG_FAILURE_ID_KEY: ""}, None),
        (JUDGE_FAILURE | {NG_FAILURE_ID_KEY: 7}, None),
    ],
)
def test_a_predecessor_is_named_by_its_failure_id_else_a_result_by_its_digest(row, expected):
    assert rejudge_predecessor_id(row) == expected


def test_the_digest_of_a_row_follows_its_values_and_not_the_order_of_its_keys():
    turned = dict(reversed(MASKED.items()))
    assert row_sha256(turned) == row_sha256(MASKED) == row_sha256(json.loads(json.dumps(turned)))
    assert row_sha256(MASKED | {"response": {"output": []}}) != row_sha256(MASKED)
    assert row_sha256(MASKED | {"note": "\ud800"}) != row_sha256(MASKED)


def test_a_number_given_by_migration_does_not_move_the_digest():
    assert row_sha256(MASKED | {"_ng_attempt_index": 5}) == row_sha256(MASKED)


@pytest.mark.parametrize(
    ("row", "kept"),
    [
        ({"response": ANSWER}, True),
        ({"deliverables_dir": "out/3-1"}, True),
        ({"response": {"output": []}, "deliverables_dir": ""}, False),
        ({"response": {"output": "text"}}, False),
        ({"response": None}, False),
        ({"response": [ANSWER]}, False),
        ({"deliverables_dir": 1}, False),
        ({"reward": 1.0}, False),
        ({}, False),
    ],
)
def test_an_answer_is_kept_by_an_output_item_or_a_folder_of_deliverables(row, kept):
    assert holds_saved_answer(row) is kept


def test_a_result_that_names_the_failure_and_its_answer_is_its_rejudgment():
    assert is_rejudgment_of(JUDGE_FAILURE, REJUDGED)


def test_a_saved_result_can_be_judged_again():
    link = {REJUDGED_FAILURE_ID_KEY: rejudge_predecessor_id(MASKED)}
    assert is_rejudgment_of(MASKED, REJUDGED | link)


DIFFERENT = [
    {REJUDGED_FAILURE_ID_KEY: "f8"},
    {REJUDGED_FAILURE_ID_KEY: None},
    {"_ng_attempt_index": 3},
    {"_ng_rollout_index": 2},
    {"_ng_rollout_id": "other"},
    {"_ng_rollout_id": "3-1-a2"},
    {"_ng_run_id": "r2"},
    {"response": {"output": [{"type": "message", "content": "43"}]}},
    {"response": None},
    {"deliverables_dir": "elsewhere"},
]


@pytest.mark.parametrize("changes", [*DIFFERENT, {"_ng_failure_class": "judge_failed"}])
def test_a_result_of_another_answer_attempt_or_failure_is_no_rejudgment(changes):
    assert not is_rejudgment_of(JUDGE_FAILURE, REJUDGED | changes)


def test_a_failure_that_names_the_failure_and_its_answer_failed_again():
    assert is_rejudgment_failure_of(JUDGE_FAILURE, FAILED_AGAIN)


@pytest.mark.parametrize("changes", [*DIFFERENT, {"_ng_failure_class": None}])
def test_a_failure_of_another_answer_attempt_or_failure_did_not_fail_again(changes):
    assert not is_rejudgment_failure_of(JUDGE_FAILURE, FAILED_AGAIN | changes)


@pytest.mark.parametrize("failure", [{NG_FAILURE_ID_KEY: None}, {"response": {"output": []}}])
def test_a_failure_without_an_id_or_an_answer_has_no_rejudgment(failure):
    failure = JUDGE_FAILURE | failure
    assert not is_rejudgment_of(failure, REJUDGED | {"response": failure["response"]})
    assert not is_rejudgment_of(failure, REJUDGED | {"response": failure["response"], REJUDGED_FAILURE_ID_KEY: None})


def test_a_row_of_a_folder_without_a_run_is_judged_again_in_the_run_that_adopts_it():
    legacy = {key: value for key, value in JUDGE_FAILURE.items() if key != "_ng_run_id"}
    assert is_rejudgment_of(legacy, REJUDGED)


KILLED = KEY | {"_ng_failure_class": "kill_shaped", "_ng_no_persist": True}


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        (KILLED, True),
        (KILLED | {"_ng_failure_legacy_class": "session_gone"}, True),
        (KILLED | {"_ng_no_persist": False}, False),
        (KILLED | {"_ng_run_id": None}, False),
        (KILLED | {"_ng_failure_class": "agent_run_error"}, False),
        (KILLED | {"_ng_failure_class": "agent_run_error", "_ng_omitted_rollout": True}, True),
        ({"_ng_omitted_rollout": True, "_ng_dispatch_drained": True}, True),
        (JUDGE_FAILURE, False),
    ],
)
def test_only_what_left_no_result_spends_nothing(row, expected):
    assert is_interruption_failure(row) is expected


def test_an_admission_is_written_as_it_was_read():
    assert RejudgeAdmission.model_validate(ADMISSION).model_dump(mode="json") == ADMISSION


@pytest.mark.parametrize(
    "changes",
    [
        {"operation_id": ""},
        {"identity": ""},
        {"predecessor_id": ""},
        {"admitted_at": ""},
        {"attempt": -1},
        {"predecessor_sha256": "ab"},
        {"predecessor_sha256": "AB" * 32},
        {"predecessor_sha256": "ab" * 32 + "\n"},
        {"reward": 1},
    ],
)
def test_what_names_nothing_is_no_admission(changes):
    with pytest.raises(ValidationError):
        RejudgeAdmission.model_validate(ADMISSION | changes)


def test_an_admission_cannot_be_changed():
    with pytest.raises(ValidationError):
        RejudgeAdmission.model_validate(ADMISSION).attempt = 3
