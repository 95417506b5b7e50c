"""How long failed attempts took, read from rows as people and collectors wrote them."""

import json

import pytest

from rollbook.ledger.durations import longest_attempts
from rollbook.records.columns import packed


def told(path, *rows):
    path.write_bytes(b"".join(row if isinstance(row, bytes) else json.dumps(row).encode() + b"\n" for row in rows))
    return dict(longest_attempts(path))


def row(task, rollout, **fields):
    return {"_ng_task_index": task, "_ng_rollout_index": rollout, "_ng_failure_class": "agent_run_error"} | fields


def test_a_run_without_failures_has_no_durations(tmp_path):
    assert longest_attempts(tmp_path / "none.jsonl") == {}


def test_the_longest_of_several_attempts_counts(tmp_path):
    rows = [row(0, 1, elapsed_seconds=seconds) for seconds in (2.5, 9.0, 4.0)]
    assert told(tmp_path / "f.jsonl", *rows, row(3, 0)) == {packed(0, 1): 9.0}


def test_the_rows_own_seconds_come_before_its_responses(tmp_path):
    response = {"metadata": {"elapsed_seconds": 7.0}, "output": [{"deep": []}]}
    rows = row(0, 0, response=response), row(1, 0, response=response, elapsed_seconds=1.5)
    assert told(tmp_path / "f.jsonl", *rows) == {packed(0, 0): 7.0, packed(1, 0): 1.5}


@pytest.mark.parametrize("value", [0, -1.0, True, "3", None, [1.0], {"s": 1}])
def test_what_is_no_positive_number_says_nothing(tmp_path, value):
    own, responses = row(0, 0, elapsed_seconds=value), row(1, 0, response={"metadata": {"elapsed_seconds": value}})
    assert told(tmp_path / "f.jsonl", own, responses) == {}


@pytest.mark.parametrize("response", ["text", [1], {"metadata": "text"}, {"metadata": None}, None])
def test_a_response_of_any_shape_is_read_past(tmp_path, response):
    assert told(tmp_path / "f.jsonl", row(0, 0, response=response)) == {}


def test_a_line_that_cannot_be_read_is_passed_over(tmp_path):
    rows = b"not json\n", b'{"_ng_task_index":"x"}\n', row(2, 0, elapsed_seconds=1.0), b'{"torn'
    assert told(tmp_path / "f.jsonl", *rows) == {packed(2, 0): 1.0}
