import pytest

from rollbook.dispatch.completion_budget import DispatchBudget, DispatchLatencyTracker


def tracked(*seconds):
    tracker = DispatchLatencyTracker()
    for one in seconds:
        tracker.record(one)
    return tracker


@pytest.mark.parametrize(
    ("deadline", "margin", "seconds", "said"),
    [
        (None, None, (), None),
        (None, 10.0, (), None),
        (100.0, None, (), "not dispatched: dispatch budget exhausted"),
        (99.0, 10.0, (), "not dispatched: dispatch budget exhausted"),
        (103.0, 10.0, (), "not dispatched: 3s left in dispatch budget, below the 10s drain margin"),
        (110.0, 10.0, (), None),
        (103.0, None, (4, 4, 4, 4), None),
        (103.0, None, (1, 2, 3, 4, 5), "not dispatched: 3s left in dispatch budget, below the 4s drain margin"),
        (104.0, None, (1, 2, 3, 4, 5), None),
        (103.0, 0.0, (9, 9, 9, 9, 9), None),
    ],
)
def test_v4_a_rollout_is_refused_when_too_little_is_left(deadline, margin, seconds, said):
    assert DispatchBudget(tracked(*seconds), deadline, margin).refusal(100.0) == said


@pytest.mark.parametrize(("share", "value"), [(0.0, 1.0), (0.5, 2.5), (0.75, 3.25), (1.0, 4.0)])
def test_a_quantile_lies_between_two_durations_by_linear_interpolation(share, value):
    assert tracked(4, 1, 3, 2).quantile(share) == value


def test_a_tracker_says_what_it_saw_in_minutes_and_task_hours():
    tracker = tracked(60, 180, 120)
    tracker.record_drained()
    summary = tracker.summary()
    assert (summary.count, summary.median_min, summary.max_min, summary.task_hours, summary.drained) == (
        3,
        2,
        3,
        0.1,
        1,
    )
    assert str(summary) == (
        "3 rollouts, median 2.00 min, p90 2.80 min, p99 2.98 min, max 3.00 min, 0.10 task-hours delivered, "
        "1 not started for want of time"
    )


def test_a_tracker_that_saw_nothing_has_no_durations_to_tell():
    assert str(DispatchLatencyTracker().summary()) == (
        "0 rollouts, 0.00 task-hours delivered, 0 not started for want of time"
    )
