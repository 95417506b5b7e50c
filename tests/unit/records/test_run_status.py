"""What a command about a run ends with, line by line of the table of exit codes."""

import os
from pathlib import Path

import pytest
from msgspec.structs import replace

from rollbook.records.run_status import (
    Damage,
    RunState,
    RunStatus,
    counted,
    exit_code,
    exit_code_of_all,
    not_owed_by,
    owed_by,
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


def covering(state=RunState.FINISHED, **parts):
    coverage = Coverage(planned=4, scored=3, **parts)
    return replace(DONE, state=state, coverage=coverage)


SETTLED = covering(failed=1, settled=1)
EXHAUSTED = covering(failed=1, exhausted=1)
HELD = covering(failed=1, held=1)
HELD_INTERRUPTED = covering(interrupted=1, held_interrupted=1)
MASKED = covering(masked=1)
APPROVED = covering(masked=1, approved=1)
RETRYABLE = covering(RunState.INTERRUPTED, failed=1, retryable=1)
INTERRUPTED = covering(RunState.INTERRUPTED, interrupted=1)
NEVER_STARTED = covering(RunState.INTERRUPTED, never_started=1)
OWED = covering(RunState.INTERRUPTED, untouched=1)
IN_FLIGHT = covering(RunState.RUNNING, in_flight=1)
TORN = replace(DONE, state=RunState.DAMAGED, damage=(Damage("r.jsonl:7", "is no JSON"),))
TORN_WHILE_RUNNING = replace(TORN, state=RunState.RUNNING)
SHORT = replace(OWED, state=RunState.DAMAGED)
UNLAWFUL = replace(DONE, coverage=Coverage(planned=4, scored=5))
BEYOND = replace(DONE, coverage=Coverage(planned=4, scored=4, unplanned=1))
NOTHING = replace(DONE, coverage=Coverage(planned=0))
EVERY_PART = Coverage(
    planned=48,
    scored=1,
    masked=3,
    unscored=3,
    failed=18,
    interrupted=9,
    never_started=6,
    in_flight=1,
    untouched=7,
    retryable=3,
    settled=4,
    exhausted=5,
    held=6,
    approved=1,
    held_interrupted=2,
)


@pytest.mark.parametrize(
    ("name", "status", "code", "when_all_is_required"),
    [
        ("everything is scored", DONE, 0, 0),
        ("one failed for good", SETTLED, 0, 4),
        ("one failed as often as it may", EXHAUSTED, 0, 4),
        ("one is held", HELD, 0, 4),
        ("one interruption is held", HELD_INTERRUPTED, 0, 4),
        ("one is masked", MASKED, 0, 4),
        ("one is masked and approved to run again", APPROVED, 3, 4),
        ("one failed and may run again", RETRYABLE, 3, 4),
        ("one was interrupted", INTERRUPTED, 3, 4),
        ("one was never started", NEVER_STARTED, 3, 4),
        ("one is owed", OWED, 3, 4),
        ("one is in flight", IN_FLIGHT, 3, 4),
        ("a line is damaged", TORN, 5, 5),
        ("a line is damaged and the run goes on", TORN_WHILE_RUNNING, 5, 5),
        ("a file is damaged and something is owed", SHORT, 5, 5),
        ("more is counted than planned", UNLAWFUL, 5, 5),
        ("something is beyond the plan", BEYOND, 5, 5),
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
    for status in (DONE, SETTLED, EXHAUSTED, HELD, MASKED, RETRYABLE, OWED, IN_FLIGHT, NOTHING):
        idle = status.coverage.owed == 0 and status.coverage.in_flight == 0
        assert (exit_code(status, require_complete=False) == 0) == idle


def test_each_rollout_has_one_reason_or_is_in_flight():
    owed, left = owed_by(EVERY_PART), not_owed_by(EVERY_PART)
    assert owed == {
        "retryable": 3,
        "interrupted": 7,
        "never started": 6,
        "untouched": 7,
        "masked, approved to run again": 1,
    }
    assert left == {"scored": 1, "masked": 2, "unscored": 3, "settled": 4, "exhausted": 5, "held": 8}
    assert sum(owed.values()) == EVERY_PART.owed
    assert sum(owed.values()) + sum(left.values()) + EVERY_PART.in_flight == EVERY_PART.planned


def test_a_reason_that_covers_nothing_is_left_out():
    assert owed_by(DONE.coverage) == {}
    assert not_owed_by(DONE.coverage) == {"scored": 4}


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
