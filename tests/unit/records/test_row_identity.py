import pytest

from rollbook.records.row_identity import identity_of_row, is_same_attempt

ROW = {"_ng_task_index": 3, "_ng_rollout_index": 1, "_ng_attempt_index": 2, "_ng_run_id": "r1"}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, ("r1", "3-1", 2)),
        ({"_ng_rollout_id": "mine"}, ("r1", "mine", 2)),
        ({"_ng_attempt_index": None}, ("r1", "3-1", 0)),
        ({"_ng_attempt_index": -1}, ("r1", "3-1", 0)),
        ({"_ng_attempt_index": True}, ("r1", "3-1", 0)),
        ({"_ng_run_id": ""}, (None, "3-1", 2)),
        ({"_ng_run_id": 7}, (None, "3-1", 2)),
        ({"_ng_rollout_id": "3-1-a2"}, None),
        ({"_ng_task_index": "3"}, None),
    ],
)
def test_a_row_is_who_its_keys_say(changes, expected):
    assert identity_of_row(ROW | changes) == expected


@pytest.mark.parametrize(
    ("changes", "same"),
    [
        ({}, True),
        ({"_ng_run_id": None}, True),
        ({"_ng_run_id": "r2"}, False),
        ({"_ng_attempt_index": 1}, False),
        ({"_ng_rollout_index": 2}, False),
        ({"_ng_task_index": None}, False),
    ],
)
def test_rows_of_one_attempt_agree_in_rollout_and_number_and_in_the_run_where_both_name_one(changes, same):
    assert (is_same_attempt(ROW, ROW | changes), is_same_attempt(ROW | changes, ROW)) == (same, same)


def test_rows_that_name_no_rollout_are_of_no_attempt():
    assert not is_same_attempt({}, {})
