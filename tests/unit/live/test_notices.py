"""What is told as it happens: stalls, limits, and failures up to a bound."""

import pytest

from rollbook.live.notices import LimitLines, Notices
from rollbook.records.event import AttemptEnded, AttemptRefused, ConcurrencyChanged, RunStalled, Waiting
from rollbook.records.identity import RolloutKey
from rollbook.records.outcome import Failed
from rollbook.records.record import Record


def waiting(task, seconds, host="127.0.0.1:8000"):
    return Waiting(RolloutKey(task, 0), seconds, "env", host, "waiting")


def test_a_stall_names_who_waits_for_how_long_where_and_in_which_phase():
    stalled = RunStalled(30.0, 2, (waiting(3, 90.0), waiting(5, 31.0)))
    assert Notices().line_for(stalled) == (
        "nothing ended for 30s; 2 in flight: 3-0 waiting for 1m30s on 127.0.0.1:8000 (env); "
        "5-0 waiting for 31s on 127.0.0.1:8000 (env)"
    )


def test_a_stall_names_five_rollouts_and_counts_the_others():
    told = Notices().line_for(RunStalled(60.0, 2048, tuple(waiting(task, 60.0) for task in range(9))))
    assert told.count("waiting for") == 5
    assert told.endswith("; and 2043 more")


def test_the_name_of_a_host_cannot_drive_the_terminal():
    told = Notices().line_for(RunStalled(60.0, 1, (waiting(1, 60.0, "h\x1b[31m\n"),)))
    assert "\x1b" not in told
    assert "\n" not in told


@pytest.mark.parametrize(
    ("limits", "told"),
    [
        ([16], []),
        ([16, 24, 31], []),
        ([16, 24, 32], [32]),
        ([16, 32, 64, 65], [32, 64]),
        ([60, 40, 20], [20]),
        ([100, 150, 75], [75]),
        ([16, 0, 16], [0, 16]),
        ([16, 16], []),
    ],
)
def test_a_limit_is_told_when_it_halved_or_moved_by_a_factor_of_two(limits, told):
    lines = LimitLines()
    said = [lines.line_for(ConcurrencyChanged(limit, "why", at=20.0 * n)) for n, limit in enumerate(limits)]
    assert [line.split()[2] for line in said if line] == [str(limit) for limit in told]


def test_a_limit_that_moves_all_the_time_is_told_every_ten_seconds_at_most():
    lines = LimitLines()
    said = [lines.line_for(ConcurrencyChanged(64 >> n % 2, "429", at=float(n))) for n in range(41)]
    assert len([line for line in said if line]) == 4


def test_a_change_that_came_too_soon_is_told_with_a_later_one():
    lines = LimitLines()
    events = [(64, 0.0), (32, 1.0), (8, 2.0), (9, 12.0)]
    said = [lines.line_for(ConcurrencyChanged(limit, "429", at=at)) for limit, at in events]
    assert said[-1] == "at most 9 rollouts in flight from now on, 32 before: 429"


def test_the_limit_of_one_server_is_not_told():
    lines = LimitLines()
    assert [lines.line_for(ConcurrencyChanged(n, "429", 0.0, "env")) for n in (64, 1)] == [None, None]


def test_failures_of_ever_new_causes_are_told_a_hundred_times_at_most():
    notices = Notices()
    said = [
        notices.line_for(
            AttemptEnded(Record(RolloutKey(n, 0), 0, Failed("agent_run_error", "500"), "r"), 1.0, 0.0, f"cause {n}")
        )
        for n in range(1000)
    ]
    told = [line for line in said if line]
    assert len(told) == 100
    assert told[-1].endswith("(further failures are counted)")


def refused(server="stub_env", status=429, why="429, message='Too Many Requests'", retry_for=600.0):
    return AttemptRefused(
        RolloutKey(0, 0), 0, why, at=0.0, retry_in=3.0, server=server, status=status, retry_for=retry_for
    )


def test_the_first_rollout_that_a_server_turns_away_is_told_and_how_long_it_is_sent_again():
    assert Notices().line_for(refused()) == (
        "stub_env turned rollouts away: 429, message='Too Many Requests'; "
        "they are sent again for up to 600 s (--retry-for)"
    )


def test_a_server_that_cannot_be_reached_is_told_as_that():
    told = Notices().line_for(refused(status=None, why="stub_env at h:1: ClientConnectorError"))
    assert told.startswith("stub_env cannot be reached: stub_env at h:1: ClientConnectorError; they are sent again")


def test_refusals_are_told_once_for_each_server_and_status():
    notices = Notices()
    asked = [refused(), refused(), refused(status=503), refused("other"), refused(), refused("other", 503)]
    assert [notices.line_for(event) is not None for event in asked] == [True, False, True, True, False, True]


def test_what_a_server_says_when_it_turns_away_cannot_drive_the_terminal():
    assert "\x1b" not in Notices().line_for(refused(why="\x1b[2J"))
