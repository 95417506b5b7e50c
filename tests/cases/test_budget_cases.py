"""Cases from the field about a run's time budget: nothing starts that cannot finish, and what never started is told.

Rules:
* The server moves the time, so that how much of the budget is left at each start is exact.
"""

import json
import random

import pytest
from aiohttp import web

from cases import peer as peers
from cases.played import FAILURES, METRICS, PLAN, RESULTS, Played, called, key_of
from cases.stepped import SteppedRun
from rollbook.records.event import AttemptEnded, AttemptStarted
from stub import adding, serving

SPENT = "not dispatched: dispatch budget exhausted"


@pytest.fixture
def budgeted(tmp_path):
    """Return what makes a run whose rollouts take as long as the test says."""
    with peers.serving() as peer:
        yield lambda tasks, lanes, takes: SteppedRun(Played(tmp_path, peer, adding(tasks)), lanes, takes)


def random_lengths(seed):
    chance = random.Random(seed)  # noqa: S311  lengths, not secrets
    lengths = [chance.expovariate(1.0) for _ in range(200)]
    return lambda task: lengths[task]


def margins(run):
    """Return the margin that stood at each start: the upper quartile of what had ended, once five had."""
    took, found = [], []
    for event in run.events:
        if isinstance(event, AttemptStarted):
            found.append((event.at - run.begun, quartile(took) if len(took) >= 5 else 0.0))
        elif isinstance(event, AttemptEnded):
            took.append(event.elapsed)
    return found


def quartile(numbers):
    ordered, position = sorted(numbers), 0.75 * (len(numbers) - 1)
    below = ordered[int(position)]
    above = ordered[min(int(position) + 1, len(ordered) - 1)]
    return below + (above - below) * (position - int(position))


@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize("margin", [None, 3.0])
def test_rc_54_of_200_rollouts_of_random_length_none_starts_with_less_than_the_margin_left(margin, recorded, budgeted):
    run = budgeted(200, 8, random_lengths(54))
    result = run.run(dispatch_budget_s=12.0, drain_margin_s=margin, record_omitted_rollouts=recorded)
    played, started = run.played, len(run.started)
    assert 20 < started < 180
    if margin is None:
        assert all(12.0 - at > 0 and 12.0 - at >= needed for at, needed in margins(run))
    else:
        assert all(12.0 - at >= margin for at in run.started)
    assert len(played.scored()) == len(played.stub.asked) == started
    rows = played.rows(FAILURES)
    assert len(rows) == (200 - started if recorded else 0)
    assert {row["_ng_failure_message"] for row in rows} <= {f"not dispatched: {result.stopped}"}
    assert "left in dispatch budget, below the" in result.stopped
    is_told_as_never_started(played, 200 - started)
    assert run.resumed().code == 0
    assert set(played.times().values()) == {1}
    assert len(played.scored()) == 200
    assert len(played.rows(FAILURES)) == len(rows)


def is_told_as_never_started(played, rest):
    """A status says of the rest that it never started, whether or not that was written down for each."""
    code, told = played.status()
    coverage = told["coverage"]
    assert (code, coverage["scored"], coverage["failed"]) == (3, 200 - rest, 0)
    assert (coverage["never_started"], coverage["untouched"]) == (rest, 0)
    assert told["law_holds"]


def test_rc_54_a_budget_of_zero_starts_nothing_and_says_so(budgeted):
    run = budgeted(4, 2, lambda _task: 1.0)
    result = run.run(dispatch_budget_s=0, record_omitted_rollouts=True)
    assert run.started == run.played.stub.asked == []
    assert result.stopped == "dispatch budget exhausted"
    assert [row["_ng_failure_message"] for row in run.played.rows(FAILURES)] == [SPENT] * 4
    assert run.resumed().code == 0


def test_what_a_server_had_no_room_for_when_the_budget_ended_is_written_down_as_never_started(tmp_path):
    with serving(lambda row: web.Response(status=503) if row["_ng_task_index"] == 0 else None) as stub:
        played = Played(tmp_path, stub, adding(2))
        budget = ["+dispatch_budget_s=0.5", "+drain_margin_s=0", "+record_omitted_rollouts=true"]
        assert called(played.words("--concurrency", "1", *budget, "--retry-for", "60")).code == 3
        assert [key_of(row) for row in played.rows(FAILURES)] == [(0, 0), (1, 0)]
        assert {row["_ng_failure_message"] for row in played.rows(FAILURES)} == {SPENT}
        code, told = played.status()
        assert (code, told["coverage"]["never_started"], told["law_holds"]) == (3, 2, True)
        stub.script = lambda _row: None
        assert called(played.words("--resume")).code == 0
        assert played.scored() == {(0, 0), (1, 0)}


def test_rc_54_before_five_have_ended_there_is_no_margin_of_their_own(budgeted):
    run = budgeted(6, 1, lambda _task: 10.0)
    run.run(dispatch_budget_s=40.5)
    assert run.started == [0.0, 10.0, 20.0, 30.0, 40.0]


def test_rc_54_a_margin_that_is_left_to_the_second_is_enough(budgeted):
    run = budgeted(6, 1, lambda _task: 1.0)
    result = run.run(dispatch_budget_s=5.0, drain_margin_s=2.0)
    assert run.started == [0.0, 1.0, 2.0, 3.0]
    assert result.stopped == "1s left in dispatch budget, below the 2s drain margin"


V12_KEYS = {
    "_ng_failure_class": "cancelled",
    "_ng_no_persist": True,
    "_ng_omitted_rollout": True,
    "_ng_failure_message": SPENT,
}


@pytest.mark.parametrize("recorded", [True, False])
def test_v12_of_three_tasks_whose_first_uses_up_the_budget_the_others_are_omitted(recorded, budgeted):
    run = budgeted(3, 1, lambda _task: 2.0)
    result = run.run(dispatch_budget_s=2.0, record_omitted_rollouts=recorded)
    played = run.played
    assert [key_of(row) for row in played.rows(RESULTS)] == [(0, 0)]
    rows = played.rows(FAILURES)
    assert [key_of(row) for row in rows] == ([(1, 0), (2, 0)] if recorded else [])
    for row in rows:
        assert V12_KEYS.items() <= row.items()
        assert not {"reward", "_ng_failure_max_attempts", "_ng_attempt_index"} & row.keys()
    coverage = result.coverage
    assert (coverage.planned, coverage.failed, coverage.planned - coverage.scored) == (3, 0, 2)
    assert run.resumed().code == 0
    later = played.stub.requests[1:]
    assert [key_of(row) for row in later] == [(1, 0), (2, 0)]
    assert not any("_ng_attempt_index" in row for row in later)


def test_v12b_the_report_names_what_is_missing_without_a_class_and_the_resume_says_what_is_owed(budgeted):
    run = budgeted(3, 1, lambda _task: 2.0)
    result = run.run(dispatch_budget_s=2.0, record_omitted_rollouts=True)
    played = run.played
    assert result.coverage.failed_by_class == {}
    before = played.rows(FAILURES)
    code, told = played.status()
    assert (code, told["coverage"]["never_started"], told["attempts"]) == (3, 2, 1)
    said = run.resumed()
    assert said.code == 0
    assert "1 of them settled before" in said.text
    assert played.rows(FAILURES) == before
    (metrics,) = json.loads(played.bytes_of(METRICS))
    assert metrics["agent_metrics"]["mean/reward"] == 1.0
    assert len(played.rows(PLAN)) == 3


def test_rc_54_what_is_in_flight_when_the_budget_ends_runs_to_its_end(budgeted):
    run = budgeted(20, 4, lambda task: 30.0 if task < 4 else 1.0)
    run.run(dispatch_budget_s=1.0, interrupt_grace_s=0.0)
    assert run.started == [0.0] * 4
    assert run.played.scored() == {(task, 0) for task in range(4)}


def test_the_command_line_takes_a_budget_without_a_number_of_lanes(tmp_path):
    with peers.serving() as peer:
        played = Played(tmp_path, peer, adding(6))
        said = played.run("--budget", "0")
        assert said.code == 3
        assert "dispatch budget exhausted" in said.text
        assert peer.asked == []
        assert played.resume("--budget", "600", "--drain-margin", "1").code == 0
        assert len(played.scored()) == 6
