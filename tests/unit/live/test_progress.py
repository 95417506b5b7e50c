"""The fold behind the progress line."""

import pytest

from rollbook.live.line import duration, line
from rollbook.live.progress import Progress, Snapshot
from rollbook.records.event import AttemptEnded, AttemptRefused, AttemptStarted, RunEnded, RunPlanned
from rollbook.records.identity import RolloutKey
from rollbook.records.outcome import Failed, Interrupted, Masked, NeverStarted, Scored, Unscored
from rollbook.records.record import Record


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


def test_a_reward_that_is_replaced_leaves_the_mean():
    progress = fold(
        RunPlanned(1, 1), started(0), ended(0, Scored(1.0)), started(0, 1), ended(0, Scored(0.0), attempt=1)
    )
    assert progress.snapshot(now=101.0).mean_reward == 0.0


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
    progress = fold(RunPlanned(10, 10, settled=6), started(0), ended(0, Scored(1.0)))
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
