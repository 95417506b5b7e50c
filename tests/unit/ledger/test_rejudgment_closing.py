import json

import pytest

from rollbook.api.rejudgment import PendingRejudge, rejudgment_admission_closed_by
from rollbook.errors import LedgerError
from rollbook.ledger.rejudgment import open_among
from rollbook.records.rejudgment import (
    REJUDGE_OPERATION_ID_KEY,
    REJUDGED_FAILURE_ID_KEY,
    REJUDGED_OBSERVATIONS_KEY,
    rejudge_predecessor_id,
    row_sha256,
)

ANSWER = {"output": [{"type": "message", "content": "42"}]}
KEY = {"_ng_task_index": 3, "_ng_rollout_index": 1, "_ng_attempt_index": 2, "_ng_run_id": "r1"}
FAILURE = KEY | {"_ng_failure_class": "judge_failed", "_ng_failure_id": "f7", "response": ANSWER}
MASKED = KEY | {"reward": 0.0, "mask_sample": True, "response": ANSWER}
AT = "2026-09-20T10:00:00Z"


def admission_of(row, **changes):
    return PendingRejudge(
        **{
            "operation_id": "op1",
            "identity": "3-1",
            "attempt": 2,
            "predecessor_id": rejudge_predecessor_id(row),
            "predecessor_sha256": row_sha256(row),
            "admitted_at": AT,
        }
        | changes
    )


def outcome_of(row, **changes):
    return KEY | {"reward": 1.0, "response": ANSWER} | admission_of(row).links | changes


@pytest.fixture
def files(tmp_path):
    """A sidecar with the failure, and results with the masked one, among others."""
    failures, results = tmp_path / "r_failures.jsonl", tmp_path / "r.jsonl"
    failures.write_text(
        "".join(json.dumps(row) + "\n" for row in ({"note": 1}, FAILURE | {"_ng_task_index": 9}, FAILURE))
    )
    results.write_text("".join(json.dumps(row) + "\n" for row in (MASKED | {"_ng_rollout_index": 0}, MASKED)))
    return failures, results


@pytest.mark.parametrize("row", [FAILURE, MASKED])
@pytest.mark.parametrize("ending", [{}, {"_ng_failure_class": "judge_failed", "reward": None}])
def test_an_admission_is_closed_by_the_ending_that_repeats_it(files, row, ending):
    assert rejudgment_admission_closed_by(admission_of(row), outcome_of(row, **ending), "3-1", *files)


@pytest.mark.parametrize(
    "changes",
    [
        {REJUDGE_OPERATION_ID_KEY: "op2"},
        {REJUDGED_FAILURE_ID_KEY: "f8"},
        {REJUDGED_OBSERVATIONS_KEY: {"predecessor_sha256": row_sha256(FAILURE), "admitted_at": "2026-09-20T11:00:00Z"}},
        {REJUDGED_OBSERVATIONS_KEY: {"predecessor_sha256": "00" * 32, "admitted_at": AT}},
        {REJUDGED_OBSERVATIONS_KEY: None},
        {"_ng_attempt_index": 3},
        {"_ng_rollout_index": 2},
        {"_ng_task_index": None},
        {"response": {"output": [{"type": "message", "content": "43"}]}},
    ],
)
def test_an_ending_that_differs_in_one_thing_closes_nothing(files, changes):
    assert not rejudgment_admission_closed_by(admission_of(FAILURE), outcome_of(FAILURE, **changes), "3-1", *files)


@pytest.mark.parametrize(
    "changes",
    [
        {"operation_id": "op2"},
        {"identity": "3-2"},
        {"attempt": 1},
        {"predecessor_id": "f8"},
        {"predecessor_sha256": "00" * 32},
        {"admitted_at": "2026-09-20T11:00:00Z"},
    ],
)
def test_another_admission_is_not_closed(files, changes):
    assert not rejudgment_admission_closed_by(admission_of(FAILURE, **changes), outcome_of(FAILURE), "3-1", *files)


def test_an_ending_of_another_rollout_closes_nothing(files):
    assert not rejudgment_admission_closed_by(admission_of(FAILURE), outcome_of(FAILURE), "3-2", *files)


def test_a_predecessor_that_was_altered_on_disk_closes_nothing(files):
    failures, _ = files
    failures.write_text(json.dumps(FAILURE | {"note": "altered"}) + "\n")
    assert not rejudgment_admission_closed_by(admission_of(FAILURE), outcome_of(FAILURE), "3-1", failures)


def test_a_predecessor_is_looked_for_only_where_it_was_saved(files):
    failures, results = files
    assert not rejudgment_admission_closed_by(admission_of(FAILURE), outcome_of(FAILURE), "3-1", results, failures)
    assert not rejudgment_admission_closed_by(admission_of(MASKED), outcome_of(MASKED), "3-1", results)


def test_a_damaged_sidecar_is_named(files):
    failures, _ = files
    failures.write_text('{"torn\n')
    with pytest.raises(LedgerError, match=r"r_failures\.jsonl:1: not a rollout record"):
        rejudgment_admission_closed_by(admission_of(FAILURE), outcome_of(FAILURE), "3-1", failures)


def append(path, row):
    with path.open("a") as file:
        file.write(json.dumps(row) + "\n")


@pytest.mark.parametrize(("row", "closing"), [(FAILURE, "r.jsonl"), (MASKED, "r.jsonl"), (FAILURE, "r_failures.jsonl")])
def test_of_many_admissions_those_are_open_that_no_row_closes(files, row, closing):
    failures, results = files
    one, other = admission_of(row), admission_of(row, identity="9-1")
    assert set(open_among([one, other], failures, results)) == {("3-1", 2), ("9-1", 2)}
    fields = {"_ng_failure_class": "judge_failed"} if closing == failures.name else {}
    append(failures.parent / closing, outcome_of(row, **fields))
    assert set(open_among([one, other], failures, results)) == {("9-1", 2)}


def test_a_row_of_another_operation_closes_nothing(files):
    append(files[1], outcome_of(FAILURE, **{REJUDGE_OPERATION_ID_KEY: "op2"}))
    assert set(open_among([admission_of(FAILURE)], *files)) == {("3-1", 2)}


def test_without_admissions_no_file_is_read(tmp_path):
    assert open_among([], tmp_path, tmp_path) == {}
