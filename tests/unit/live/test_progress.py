"""The fold behind the progress line."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollbook.live.line import duration, line
from rollbook.live.progress import Progress, Snapshot
from rollbook.records.coverage import Coverage
from rollbook.records.event import (
    Admission,
    AdmissionChanged,
    AttemptCut,
    AttemptEnded,
    AttemptRefused,
    AttemptStarted,
    ConcurrencyChanged,
    RunEnded,
    RunPlanned,
    RunRead,
)
from rollbook.records.identity import RolloutKey
from rollbook.records.outcome import Evidence, Failed, Interrupted, Masked, NeverStarted, Scored, Unscored
from rollbook.records.record import Record
from rollbook.records.standing import Standings


def ended(task, outcome, attempt=0, run_id="r"):
    return AttemptEnded(Record(RolloutKey(task, 0), attempt, outcome, run_id), elapsed=1.0, at=0.0)


def started(task, attempt=0):
    return AttemptStarted(RolloutKey(task, 0), attempt, at=0.0)


def fold(*events):
    progress = Progress(started_at=100.0)
    for event in events:
        progress.add(event)
    return progress


def test_the_mean_covers_scored_rollouts_and_says_how_many():
    progress = fold(
        RunPlanned(4, 4),
        *(started(task) for task in range(4)),
        ended(0, Scored(1.0)),
        ended(1, Scored(0.5)),
        ended(2, Masked(0.0)),
        ended(3, Failed("agent_run_error")),
    )
    seen = progress.snapshot(now=110.0)
    assert (seen.finished, seen.mean_reward, seen.scored, seen.masked, seen.failed) == (4, 0.75, 2, 1, 1)


def test_a_rollout_that_fails_and_then_scores_counts_once_as_scored():
    progress = fold(
        RunPlanned(1, 1), started(0), ended(0, Failed("agent_run_error")), started(0, 1), ended(0, Scored(1.0), 1)
    )
    seen = progress.snapshot(now=101.0)
    assert (seen.finished, seen.failed, seen.scored, seen.in_flight) == (1, 0, 1, 0)


def test_a_masked_result_that_is_run_again_is_masked_no_longer():
    progress = fold(
        RunPlanned(1, 1), started(0), ended(0, Masked(1.0)), started(0, 1), ended(0, Scored(0.0), attempt=1)
    )
    seen = progress.snapshot(now=101.0)
    assert (seen.finished, seen.masked, seen.scored, seen.mean_reward) == (1, 0, 1, 0.0)


NOT_SCORED = [
    Masked(0.5),
    Unscored(),
    Failed("agent_run_error"),
    Interrupted("kill_shaped"),
    NeverStarted("x"),
    Evidence("x"),
]


@given(
    st.lists(st.tuples(st.integers(0, 600), st.sampled_from(NOT_SCORED)), max_size=40),
    st.lists(st.integers(0, 600), unique=True, max_size=20),
)
def test_the_counts_are_those_of_the_fold_over_all_records(tried, scored):
    progress, model = fold(RunPlanned(601, 601)), Standings()
    attempts = Counter()
    for task, outcome in [*tried, *((task, Scored(1.0)) for task in scored)]:
        event = ended(task, outcome, attempts[task])
        attempts[task] += 1
        progress.add(event)
        model.add(event.record)
    stands = Counter(type(record.outcome) for record in model)
    seen = progress.snapshot(now=101.0)
    counted = (seen.scored, seen.masked, seen.unscored, seen.failed, seen.interrupted, seen.never_started)
    assert counted == tuple(stands[kind] for kind in (Scored, Masked, Unscored, Failed, Interrupted, NeverStarted))


def test_the_limit_is_shown_once_it_is_known():
    progress = fold(RunPlanned(9, 9), started(0), started(1), ConcurrencyChanged(64, "it pays", at=0.0))
    progress.add(ConcurrencyChanged(3, "429", at=0.0, server="agent"))
    assert "2 of 64 in flight" in line(progress.snapshot(now=101.0))


def test_nothing_is_in_flight_once_the_run_ended():
    progress = fold(RunPlanned(3, 3), started(0), started(1), ended(0, Unscored()), RunEnded())
    assert progress.snapshot(now=101.0).in_flight == 0
    assert "in flight" not in line(progress.snapshot(now=101.0))


def test_in_flight_is_what_started_and_did_not_end():
    progress = fold(RunPlanned(3, 3), started(0), started(1), ended(0, Unscored()))
    assert progress.snapshot(now=101.0).in_flight == 1


def test_a_rollout_that_never_started_is_not_finished_and_frees_no_place():
    progress = fold(RunPlanned(2, 2), started(0), ended(1, NeverStarted("budget")))
    seen = progress.snapshot(now=101.0)
    assert (seen.finished, seen.never_started, seen.in_flight) == (0, 1, 1)


def test_a_rollout_that_was_turned_away_is_not_in_flight_while_it_waits():
    refused = AttemptRefused(RolloutKey(0, 0), 0, "503", at=0.0, retry_in=5.0)
    waiting = fold(RunPlanned(2, 2), started(0), started(1), refused)
    assert waiting.snapshot(now=101.0).in_flight == 1
    waiting.add(started(0, 1))
    waiting.add(ended(0, Scored(1.0), 1))
    seen = waiting.snapshot(now=102.0)
    assert (seen.finished, seen.in_flight, seen.failed) == (1, 1, 0)


def test_rollouts_settled_before_count_as_finished_and_not_in_the_rate():
    progress = fold(RunPlanned(10, 10, settled=6), started(0), started(1), ended(0, Scored(1.0)))
    seen = progress.snapshot(now=160.0)
    assert (seen.finished, seen.per_minute) == (7, 1.0)
    assert seen.seconds_left == pytest.approx(180.0)


def test_the_mean_of_a_resumed_run_covers_the_run():
    progress = fold(RunPlanned(4, 4, 3, settled_scored=3, settled_rewards=1.5), started(0), ended(0, Scored(1.0)))
    seen = progress.snapshot(now=160.0)
    assert (seen.mean_reward, seen.scored, seen.finished) == (0.625, 4, 4)


def test_a_run_of_under_a_second_has_no_rate():
    assert fold(RunPlanned(1, 1), started(0), ended(0, Scored(1.0))).snapshot(now=100.2).per_minute is None


def test_nothing_is_left_once_the_run_ended():
    progress = fold(RunPlanned(2, 2), started(0), ended(0, Interrupted("kill_shaped")), RunEnded())
    seen = progress.snapshot(now=101.0)
    assert (seen.ended, seen.seconds_left, seen.interrupted) == (True, None, 1)


def test_there_is_no_rate_before_anything_finished():
    seen = fold(RunPlanned(2, 2), started(0)).snapshot(now=105.0)
    assert (seen.per_minute, seen.seconds_left, seen.mean_reward) == (None, None, None)


@pytest.mark.parametrize(
    ("snapshot", "text"),
    [
        (Snapshot(planned=4), "0/4 finished (0%) · 0s so far"),
        (Snapshot(), "preparing · 0s so far"),
        (
            Snapshot(
                planned=40,
                finished=12,
                scored=9,
                failed=1,
                in_flight=8,
                mean_reward=2 / 3,
                elapsed=23.0,
                per_minute=31.2,
                seconds_left=54.0,
            ),
            (
                "12/40 finished (30%) · mean reward 0.667 over 9 · 1 failed · 8 in flight "
                "· 31.2/min · 23s so far · 54s left"
            ),
        ),
        (
            Snapshot(planned=2, finished=2, masked=2, elapsed=61.0, ended=True),
            "2/2 finished (100%) · 2 masked · ended after 1m01s",
        ),
    ],
)
def test_the_line_says_what_there_is_and_nothing_else(snapshot, text):
    assert line(snapshot) == text


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0s"), (0.2, "0.2s"), (59.4, "59s"), (200, "3m20s"), (7500, "2h05m")]
)
def test_durations_are_written_as_people_write_them(seconds, text):
    assert duration(seconds) == text


# What waits, and what is sent at all.


def turned_away(task, why="429, message='Too Many Requests'", attempt=0):
    return AttemptRefused(RolloutKey(task, 0), attempt, why, at=0.0, retry_in=3.0, server="env", status=429)


def test_the_line_says_how_many_wait_to_be_sent_again_and_what_the_latest_of_them_met():
    waiting = fold(RunPlanned(9, 9), started(0), started(1), turned_away(0), turned_away(1, "503 busy"))
    assert "0/9 finished (0%) · 2 to be sent again (503 busy)" in line(waiting.snapshot(now=131.0))


def test_a_rollout_that_is_sent_again_waits_no_longer():
    seen = fold(RunPlanned(9, 9), started(0), started(1), turned_away(0), turned_away(1), started(1, 1))
    assert (seen.snapshot(now=101.0).again, seen.snapshot(now=101.0).in_flight) == (1, 1)


def test_why_rollouts_wait_is_told_as_long_as_nothing_ends():
    seen = fold(RunPlanned(9, 9), started(0), started(1), turned_away(0), ended(1, Scored(1.0)))
    assert "1 to be sent again ·" in line(seen.snapshot(now=101.0))


def test_nothing_waits_once_the_run_ended():
    assert "again" not in line(fold(RunPlanned(9, 9), started(0), turned_away(0), RunEnded()).snapshot(now=101.0))


def test_what_a_server_said_is_cut_and_cannot_drive_the_terminal():
    told = line(fold(RunPlanned(1, 1), started(0), turned_away(0, "\x1b" * 300)).snapshot(now=101.0))
    assert "\x1b" not in told
    assert len(told) < 200


def test_an_attempt_that_was_cut_is_in_flight_no_longer():
    cut = AttemptCut(RolloutKey(0, 0), 0, "run again: asked for", at=0.0)
    seen = fold(RunPlanned(2, 2), started(0), started(1), cut, started(0, 1))
    assert seen.snapshot(now=101.0).in_flight == 2


@pytest.mark.parametrize("admission", [Admission.PAUSED, Admission.DRAINING, Admission.STOPPING])
def test_a_run_that_sends_nothing_says_so_and_estimates_no_time_left(admission):
    events = (RunPlanned(4, 4), started(0), started(1), ended(0, Scored(1.0)))
    seen = fold(*events, AdmissionChanged(admission)).snapshot(now=110.0)
    assert line(seen).startswith(f"1/4 finished (25%) · {admission.value} · mean reward")
    assert seen.seconds_left is None
    again = fold(*events, AdmissionChanged(admission), AdmissionChanged(Admission.OPEN)).snapshot(now=110.0)
    assert admission.value not in line(again)
    assert again.seconds_left is not None


def test_a_run_with_nothing_in_flight_estimates_no_time_left():
    held = fold(RunPlanned(4, 4), started(0), ended(0, Scored(1.0)))
    assert held.snapshot(now=110.0).seconds_left is None
    held.add(started(1))
    assert held.snapshot(now=110.0).seconds_left == pytest.approx(30.0)


def test_what_others_wrote_is_counted_by_what_is_on_disk_and_has_no_rate():
    coverage = Coverage(5, scored=4, failed=1, retryable=1)
    seen = fold(RunPlanned(5, 5, 2, settled_scored=2, settled_rewards=2.0), RunRead(coverage, 3.0), RunEnded())
    assert line(seen.snapshot(now=110.0)) == (
        "5/5 finished (100%) · mean reward 0.750 over 4 · 1 failed · ended after 10s"
    )


def test_a_failure_that_is_a_score_of_0_counts_in_what_was_read_whether_or_not_it_is_final():
    seen = fold(RunPlanned(4, 4), RunRead(Coverage(4, scored=2, failed=2, retryable=2), 2.0, zeros=1), RunEnded())
    shown = seen.snapshot(now=1.0)

    assert (shown.scored, shown.zeros, shown.failed, shown.mean_reward) == (2, 1, 2, pytest.approx(2 / 3))
