"""What a command about a run ends with, line by line of the table of exit codes."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from rollbook.records.run_status import (
    Damage,
    RunState,
    RunStatus,
    counted,
    exit_code,
    exit_code_of_all,
    summed,
)
from rollbook.records.standing import Coverage

DONE = RunStatus(
    output=Path("out/r.jsonl"),
    state=RunState.FINISHED,
    run_id="5f1c",
    managed=True,
    coverage=Coverage(planned=4, scored=4),
    groups=(),
    sessions=(),
    attempts=4,
    refused=0,
    cap=3,
    owed_by={},
    not_owed_by={"scored": 4},
    damage=(),
    started_at=None,
    elapsed_s=None,
    tokens=None,
    notes=(),
)
SETTLED = replace(DONE, coverage=Coverage(planned=4, scored=3, failed=1), not_owed_by={"scored": 3, "settled": 1})
MASKED = replace(DONE, coverage=Coverage(planned=4, scored=3, masked=1), not_owed_by={"scored": 3, "masked": 1})
OWED = replace(
    DONE,
    state=RunState.INTERRUPTED,
    coverage=Coverage(planned=4, scored=3, untouched=1),
    owed_by={"untouched": 1},
    not_owed_by={"scored": 3},
)
IN_FLIGHT = replace(
    DONE, state=RunState.RUNNING, coverage=Coverage(planned=4, scored=3, in_flight=1), not_owed_by={"scored": 3}
)
TORN = replace(DONE, state=RunState.DAMAGED, damage=(Damage("r.jsonl:7", "is no JSON"),))
SHORT = replace(OWED, state=RunState.DAMAGED)
UNLAWFUL = replace(DONE, coverage=Coverage(planned=4, scored=5))
NOTHING = replace(DONE, coverage=Coverage(planned=0), not_owed_by={})


@pytest.mark.parametrize(
    ("name", "status", "code", "when_all_is_required"),
    [
        ("everything is scored", DONE, 0, 0),
        ("one failed for good", SETTLED, 0, 4),
        ("one is masked", MASKED, 0, 4),
        ("one is owed", OWED, 3, 4),
        ("one is in flight", IN_FLIGHT, 3, 4),
        ("a line is damaged", TORN, 5, 5),
        ("a file is damaged and something is owed", SHORT, 5, 5),
        ("more is counted than planned", UNLAWFUL, 5, 5),
        ("the plan is empty", NOTHING, 0, 0),
    ],
)
def test_the_exit_code_is_that_of_the_table(name, status, code, when_all_is_required):
    assert exit_code(status, require_complete=False) == code, name
    assert exit_code(status, require_complete=True) == when_all_is_required, name


def test_several_runs_end_with_the_gravest_code():
    assert exit_code_of_all([DONE, OWED], require_complete=False) == 3
    assert exit_code_of_all([OWED, TORN, DONE], require_complete=False) == 5
    assert exit_code_of_all([], require_complete=False) == 0


def test_a_loop_until_exit_zero_ends_only_where_a_resume_does_nothing():
    for status in (DONE, SETTLED, MASKED, OWED, IN_FLIGHT, NOTHING):
        idle = status.owed == 0 and status.coverage.in_flight == 0
        assert (exit_code(status, require_complete=False) == 0) == idle


def test_coverages_are_summed_part_by_part_and_class_by_class():
    one = Coverage(planned=3, scored=1, failed=2, failed_by_class={"agent_run_error": 2})
    other = Coverage(planned=2, failed=1, untouched=1, failed_by_class={"agent_run_error": 1})
    assert summed([one, other]) == Coverage(
        planned=5, scored=1, failed=3, untouched=1, failed_by_class={"agent_run_error": 3}
    )
    assert summed([]) == Coverage(planned=0)


def test_counts_are_summed_in_the_order_in_which_they_appear():
    assert list(counted([{"b": 1}, {"a": 2, "b": 3}]).items()) == [("b", 4), ("a", 2)]


def test_the_output_of_a_status_is_a_path():
    assert os.fspath(DONE.output) == "out/r.jsonl"
