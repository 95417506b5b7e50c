"""Rows of the sidecar, read by code of others."""

import pytest

from rollbook import get_max_rollout_attempts, is_terminal_failure


@pytest.mark.parametrize(
    ("row", "timeouts", "expected"),
    [
        ({}, False, False),
        ({"_ng_failure_terminal": True}, False, True),
        ({"_ng_failure_terminal": True}, True, True),
        ({"_ng_failure_class": "timeout_exceeded", "_ng_failure_terminal": True}, False, True),
        ({"_ng_failure_class": "timeout_exceeded", "_ng_failure_terminal": True}, True, False),
        ({"_ng_failure_class": "other", "_ng_failure_legacy_class": "skipped"}, True, True),
        ({"_ng_failure_class": "skipped", "_ng_failure_legacy_class": 1}, True, True),
    ],
)
def test_a_row_is_terminal_by_the_rule_of_a_resume(row, timeouts, expected):
    assert is_terminal_failure(row, retry_terminal_timeouts=timeouts) is expected


@pytest.mark.parametrize(("said", "cap"), [("5", 5), ("none", 3)])
def test_the_cap_is_what_the_environment_says(monkeypatch, said, cap):
    monkeypatch.setenv("NEMO_GYM_MAX_ROLLOUT_ATTEMPTS", said)
    assert get_max_rollout_attempts() == cap
