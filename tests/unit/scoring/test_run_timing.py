"""The rows of the timing table, by what was seen and when they are looked at."""

import math

import pytest

from rollbook.scoring.run_timing import RunTiming, State, TimingBounds, tells_of_timeout, timing_lines

BOUNDS = TimingBounds(10.0, 0.5, 20.0, 100.0, 0.5, 0.25, 0.5)
BEGAN = 1000.0


def timing(starts=(), ends=(), queues=(), bounds=BOUNDS, total=4):
    """A run whose rollouts started and took so many seconds; an end is (seconds, whether by its limit)."""
    seen = RunTiming(total, bounds, BEGAN)
    for seconds in starts:
        seen.start(BEGAN + seconds)
    for seconds, timed_out in ends:
        seen.end(seconds, timed_out=timed_out)
    for waiting, running in queues:
        seen.queue(waiting, running)
    return seen


def state(seen, name, after):
    return next(row.state for row in seen.rows(BEGAN + after) if row.name == name)


@pytest.mark.parametrize(
    ("starts", "after", "said"),
    [
        ([], 0, State.OPEN),
        ([1], 9, State.OPEN),
        ([1, 2], 9, State.OK),
        ([1], 10, State.WARN),
        ([1, 10], 30, State.OK),
        ([1, 11, 12, 13], 30, State.WARN),
    ],
)
def test_start_coverage_is_open_until_its_time_has_come_or_it_cannot_fall_short(starts, after, said):
    assert state(timing(starts), "start coverage", after) is said


@pytest.mark.parametrize(
    ("starts", "after", "said"),
    [
        ([1, 2], 20, State.OPEN),
        ([1, 2], 21, State.WARN),
        ([1, 2, 3, 20], 50, State.OK),
        ([1, 2, 3, 21], 50, State.WARN),
    ],
)
def test_all_started_is_held_against_the_last_start_or_the_time_that_passed_without_it(starts, after, said):
    assert state(timing(starts), "all started", after) is said


@pytest.mark.parametrize(
    ("ends", "by_limit", "long"),
    [
        ([(1, False)], State.OK, State.OK),
        ([(1, True), (1, False), (1, False), (1, False)], State.OK, State.OK),
        ([(1, True), (1, False)], State.WARN, State.OK),
        ([(101, False), (100, False)], State.OK, State.OK),
        ([(101, False)], State.OK, State.WARN),
    ],
)
def test_what_ended_by_the_limit_and_what_took_long_are_shares_of_what_finished(ends, by_limit, long):
    seen = timing(ends=ends)
    assert (state(seen, "ended by the limit", 0), state(seen, "long rollouts", 0)) == (by_limit, long)


@pytest.mark.parametrize(
    ("queues", "said", "peak"),
    [
        ([(1, 2)], State.OK, 0.5),
        ([(2, 2), (0, 2)], State.OK, 1.0),
        ([(2, 2)], State.WARN, 1.0),
        ([(0, 0)], State.OK, 0.0),
        ([(1, 0)], State.WARN, math.inf),
    ],
)
def test_a_queue_is_what_waits_over_what_runs_in_all_samples(queues, said, peak):
    seen = timing(queues=queues)
    assert (state(seen, "server queue", 0), seen.peak) == (said, peak)


def test_a_row_is_left_out_that_nobody_asked_for_or_that_has_nothing_to_say():
    bounds = TimingBounds(10.0, 0.5, None, None, 0.5, 0.25)
    assert [row.name for row in timing(queues=[(1, 1)], bounds=bounds).rows(BEGAN)] == ["start coverage"]
    assert "server queue" not in [row.name for row in timing().rows(BEGAN)]


def test_each_row_outside_its_bound_is_a_warning_and_no_other():
    lines = timing_lines(timing([1, 2, 3, 4], [(101, True)]).rows(BEGAN + 30))
    assert [line.split(":")[1] for line in lines if line.startswith("WARNING")] == [
        " ended by the limit",
        " long rollouts",
    ]


@pytest.mark.parametrize(
    ("result", "said"),
    [
        ({"timeouts": [{"type": "x"}]}, True),
        ({"failure_kind": "agent_timeout"}, True),
        ({"_ng_failure_class": "timeout_exceeded"}, True),
        ({"timeouts": []}, False),
        ({"timeouts": "yes", "elapsed_seconds": 1e9}, False),
    ],
)
def test_a_result_tells_of_a_timeout_by_an_event_a_kind_or_a_class(result, said):
    assert tells_of_timeout(result) is said
