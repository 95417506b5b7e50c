"""The fold over a rollout's records, line by line of its rules."""

import pytest

from rollbook.records.disposition import Disposition, Rules
from rollbook.records.failure_kinds import JUDGE_FAILED, Delivery
from rollbook.records.identity import RolloutKey
from rollbook.records.outcome import Evidence, Failed, Interrupted, Masked, NeverStarted, Scored, Unscored
from rollbook.records.record import Record
from rollbook.records.standing import Standings

KEY = RolloutKey(0, 0)
FAILED = Failed("agent_run_error")
JUDGE = Failed(JUDGE_FAILED)
KILLED = Interrupted("kill_shaped")
SENT = Delivery.POSSIBLY_DELIVERED
DRAINED = NeverStarted("not dispatched: dispatch budget exhausted")
EVIDENCE = Evidence("500")


def standing_of(*records: tuple[object, int, str | None]) -> object:
    standings = Standings()
    for outcome, attempt, run_id in records:
        standings.add(Record(KEY, attempt, outcome, run_id))
    stands = standings.of(KEY)
    return stands.outcome if stands else None


@pytest.mark.parametrize(
    ("name", "records", "stands"),
    [
        ("nothing written", [], None),
        ("a result", [(Scored(1.0), 0, None)], Scored(1.0)),
        ("the latest failure", [(FAILED, 0, None), (JUDGE, 1, None)], JUDGE),
        ("an interruption hides an older failure", [(JUDGE, 0, None), (KILLED, 1, None)], KILLED),
        ("a never-started row does not", [(JUDGE, 0, None), (DRAINED, 0, None)], JUDGE),
        ("evidence does not", [(JUDGE, 0, None), (EVIDENCE, 1, None)], JUDGE),
        ("evidence alone stands until something happens", [(EVIDENCE, 0, None), (FAILED, 0, None)], FAILED),
        (
            "without a run id a result wins over a later failure",
            [(Scored(0.0), 0, None), (FAILED, 1, None)],
            Scored(0.0),
        ),
        ("and over an earlier one", [(FAILED, 1, None), (Scored(0.0), 0, None)], Scored(0.0)),
        ("same attempt, result wins", [(Scored(1.0), 2, "r"), (FAILED, 2, "r")], Scored(1.0)),
        ("numbered, the highest attempt wins", [(FAILED, 3, "r"), (Scored(1.0), 2, "r")], FAILED),
        ("in whichever order", [(Scored(1.0), 2, "r"), (FAILED, 3, "r")], FAILED),
        (
            "a failure never hides a masked result of its attempt",
            [(Masked(1.0), 0, None), (KILLED, 0, None)],
            Masked(1.0),
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_latest_execution_stands(name, records, stands):
    assert standing_of(*records) == stands


def test_coverage_counts_every_planned_rollout_once():
    standings = Standings()
    outcomes = [Scored(1.0), Masked(), Unscored(), FAILED, FAILED, JUDGE, KILLED, DRAINED, EVIDENCE]
    for task, outcome in enumerate(outcomes):
        standings.add(Record(RolloutKey(task, 0), 0, outcome))
    standings.reserved(RolloutKey(50, 0), 0, session=1)
    coverage = standings.coverage(12, Rules(live_session=1))
    assert coverage.law_holds
    assert (coverage.scored, coverage.masked, coverage.unscored, coverage.failed) == (1, 1, 1, 3)
    assert (coverage.interrupted, coverage.never_started, coverage.in_flight, coverage.untouched) == (2, 1, 1, 2)
    assert coverage.failed_by_class == {"agent_run_error": 2, "judge_failed": 1}


def test_records_beyond_the_plan_break_the_law():
    standings = Standings()
    standings.add(Record(RolloutKey(0, 0), 0, Scored(1.0)))
    standings.add(Record(RolloutKey(1, 0), 0, Scored(1.0)))
    assert not standings.coverage(planned=1).law_holds


def spent_of(*records):
    standings = Standings()
    for outcome, attempt, run_id in records:
        if run_id is not None:
            standings.reserved(KEY, attempt, session=1)
        standings.add(Record(KEY, attempt, outcome, run_id))
    return standings.spent(KEY)


@pytest.mark.parametrize(
    ("outcome", "of_a_run", "of_none"),
    [
        (FAILED, 1, 1),
        (JUDGE, 1, 1),
        (Failed("agent_request_failed", delivery=Delivery.NOT_SENT), 0, 1),
        (Failed("agent_request_failed", delivery=SENT, http_status=429), 0, 1),
        (Failed("agent_request_failed", delivery=SENT, http_status=503), 0, 1),
        (Failed("agent_request_failed", delivery=SENT, http_status=502), 1, 1),
        (Failed("agent_request_failed", delivery=SENT, http_status=504), 1, 1),
        (Failed("agent_request_failed", delivery=SENT), 1, 1),
        (Failed("agent_request_failed", delivery=Delivery.DELIVERED, http_status=503), 1, 1),
        (KILLED, 0, 0),
        (DRAINED, 0, 0),
        (EVIDENCE, 0, 0),
        (Scored(0.0), 0, 0),
    ],
)
def test_only_a_failure_that_may_have_run_counts_against_the_cap(outcome, of_a_run, of_none):
    assert spent_of((outcome, 0, "r")) == of_a_run
    assert spent_of((outcome, 0, None)) == of_none


def test_a_row_that_is_there_twice_counts_once():
    assert spent_of((FAILED, 0, "r"), (FAILED, 0, "r"), (FAILED, 1, "r")) == 2


def test_nothing_is_spent_of_a_rollout_that_nobody_named():
    assert Standings().spent(KEY) == 0


def test_a_number_that_was_handed_out_is_never_the_next_one():
    standings = Standings()
    ends = [standings.refused, standings.cut, lambda _key, _attempt: None]
    for number, end in enumerate(ends):
        assert standings.next_attempt(KEY) == number
        standings.reserved(KEY, number, session=1)
        end(KEY, number)
    assert standings.next_attempt(KEY) == len(ends)


def test_rows_that_name_no_run_take_the_numbers_in_the_order_of_the_file():
    standings = Standings()
    added = [standings.add(Record(KEY, 0, outcome)).attempt for outcome in (FAILED, KILLED, FAILED, DRAINED)]
    assert (added[0], added[2]) == (0, 1)
    assert standings.next_attempt(KEY) == 2


def in_flight(*, attempts=1, live=None):
    standings = Standings()
    standings.plan(KEY)
    for attempt in range(attempts):
        standings.reserved(KEY, attempt, session=1)
    return standings, Rules(live_session=live)


def test_what_was_handed_out_is_in_flight_while_its_session_lives_and_interrupted_afterwards():
    for live, disposition in [
        (1, Disposition.IN_FLIGHT),
        (None, Disposition.INTERRUPTED),
        (2, Disposition.INTERRUPTED),
    ]:
        standings, rules = in_flight(live=live)
        assert standings.standing(KEY, rules).disposition is disposition


def test_what_was_cut_is_no_longer_in_flight_and_not_lost():
    standings, rules = in_flight(live=1)
    standings.cut(KEY, 0)
    assert standings.standing(KEY, rules).disposition is Disposition.INTERRUPTED
    assert standings.lost(KEY) == ()


def test_every_attempt_that_left_neither_ending_nor_word_is_lost():
    standings, _ = in_flight(attempts=3)
    standings.add(Record(KEY, 1, FAILED, "r"))
    assert standings.lost(KEY) == (0, 2)
    assert list(standings.losses()) == [(KEY, (0, 2))]


def test_an_attempt_that_never_ran_leaves_its_rollout_as_it_was():
    standings, rules = in_flight()
    standings.refused(KEY, 0)
    assert standings.standing(KEY, rules).disposition is Disposition.UNTOUCHED
    assert standings.lost(KEY) == ()


@pytest.mark.parametrize(
    ("outcome", "disposition"),
    [
        (FAILED, Disposition.INTERRUPTED),
        (JUDGE, Disposition.INTERRUPTED),
        (Failed("x", terminal=True), Disposition.SETTLED),
        (Masked(1.0), Disposition.MASKED),
        (Scored(1.0), Disposition.SCORED),
    ],
)
def test_an_attempt_without_an_ending_hides_a_failure_and_neither_a_result_nor_an_end_for_good(outcome, disposition):
    standings, rules = in_flight(attempts=2)
    standings.add(Record(KEY, 0, outcome, "r"))
    assert standings.standing(KEY, rules).disposition is disposition


def test_once_admission_stopped_what_was_not_sent_is_never_started():
    standings, rules = in_flight(attempts=0)
    standings.stopped("SIGTERM")
    assert standings.standing(KEY, rules).disposition is Disposition.NEVER_STARTED
    assert standings.standing(KEY, Rules(live_session=2)).disposition is Disposition.UNTOUCHED


def test_a_record_of_an_attempt_that_nobody_handed_out_is_noticed():
    standings, _ = in_flight()
    standings.add(Record(KEY, 0, FAILED, "r"))
    assert standings.unreserved == 0
    standings.add(Record(KEY, 7, FAILED, "r"))
    assert standings.unreserved == 1
