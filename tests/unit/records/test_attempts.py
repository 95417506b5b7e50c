"""Attempt numbers: handed out once, ended, cut, lost, and charged. collection.md §5.4.2, §5.4.4, V14."""

import pytest

from rollbook.records.disposition import Disposition, Rules
from rollbook.records.failure_kinds import ALLOCATION_ENDED_FAILURE_CLASS
from rollbook.records.identity import RolloutKey
from rollbook.records.outcome import Evidence, Failed, Interrupted, NeverStarted, Scored
from rollbook.records.record import Record
from rollbook.records.standing import Standings
from rollbook.recovery.charges import ALLOCATION_ENDED, allocation_end_charges

KEY = RolloutKey(4, 0)
RULES = Rules(cap=3)
FAILED = Failed("agent_run_error")


def handed_out(*attempts):
    standings = Standings()
    standings.plan(KEY)
    for attempt in attempts:
        standings.reserved(KEY, attempt, 1)
    return standings


def charged(standings, rules=RULES):
    """Save the charges as a resume does, and return them."""
    charges = allocation_end_charges(standings, rules).get(KEY, ())
    for attempt in charges:
        standings.add(Record(KEY, attempt, ALLOCATION_ENDED.outcome, "r"))
    return charges


def test_v14_the_first_loss_is_free_and_each_later_one_spends_one_of_the_cap():
    standings = handed_out(0, 1, 2)
    assert charged(standings) == (1, 2)
    assert (standings.spent(KEY), standings.next_attempt(KEY)) == (2, 3)
    assert standings.of(KEY).outcome.failure_class == ALLOCATION_ENDED_FAILURE_CLASS
    assert standings.standing(KEY, RULES).disposition is Disposition.RETRYABLE


def test_v14_loading_twice_charges_nothing_new():
    standings = handed_out(0, 1, 2)
    charged(standings)
    assert charged(standings) == ()


def test_one_loss_alone_is_free():
    assert charged(handed_out(0)) == ()


@pytest.mark.parametrize(
    "outcome",
    [
        pytest.param(Scored(1.0), id="finished"),
        pytest.param(Failed("x", terminal=True), id="settled"),
        pytest.param(Failed("judge_failed"), id="held"),
        pytest.param(Interrupted("kill_shaped"), id="blocked"),
    ],
)
def test_what_no_resume_would_run_is_never_charged(outcome):
    standings = handed_out(0, 1, 2)
    standings.add(Record(KEY, 2, outcome, "r"))
    assert charged(standings) == ()


@pytest.mark.parametrize(
    ("settle", "lost"),
    [
        pytest.param(lambda standings: standings.refused(KEY, 1), (0, 2), id="refused"),
        pytest.param(lambda standings: standings.cut(KEY, 1), (0, 2), id="cut by its own process"),
        pytest.param(lambda standings: standings.add(Record(KEY, 1, FAILED, "r")), (0, 2), id="failed"),
        pytest.param(lambda standings: standings.add(Record(KEY, 1, Evidence(""), "r")), (0, 2), id="evidence"),
        pytest.param(lambda standings: standings.add(Record(KEY, 1, NeverStarted(""), "r")), (0, 1, 2), id="drained"),
        pytest.param(len, (0, 1, 2), id="nothing said"),
    ],
)
def test_an_attempt_is_lost_that_left_neither_an_ending_nor_a_word(settle, lost):
    standings = handed_out(0, 1, 2)
    settle(standings)
    assert standings.lost(KEY) == lost


def test_a_loss_leaves_a_gap_and_its_number_is_not_used_again():
    assert handed_out(0, 3).next_attempt(KEY) == 4


@pytest.mark.parametrize("attempt", [0, 1, 14, 15, 16, 17, 62, 63, 64, 65, 200])
def test_numbers_beyond_the_column_are_numbers_like_the_others(attempt):
    standings = handed_out(attempt)
    assert standings.next_attempt(KEY) == attempt + 1
    assert standings.lost(KEY) == (attempt,)
    standings.refused(KEY, attempt)
    assert standings.lost(KEY) == ()
    assert standings.next_attempt(KEY) == attempt + 1


def test_a_record_of_a_number_that_was_never_handed_out_is_counted_and_its_number_is_used():
    standings = handed_out(0)
    standings.add(Record(KEY, 5, FAILED, "r"))
    assert standings.unreserved == 1
    assert standings.next_attempt(KEY) == 6


def test_rows_without_a_run_id_are_numbered_in_file_order_around_what_was_handed_out():
    standings = handed_out(2)
    numbers = [standings.add(Record(KEY, 0, outcome)).attempt for outcome in (FAILED, FAILED, Scored(1.0))]
    assert numbers == [0, 1, 3]


def test_omitted_rows_without_a_run_id_take_no_number():
    standings = Standings()
    for outcome in (Interrupted("kill_shaped"), NeverStarted(""), Evidence("")):
        standings.add(Record(KEY, 0, outcome))
    assert standings.next_attempt(KEY) == 0
