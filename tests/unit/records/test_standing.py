"""The fold over a rollout's records, line by line of its rules."""

import pytest

from rollbook.records.disposition import Rules
from rollbook.records.failure_kinds import JUDGE_FAILED
from rollbook.records.identity import RolloutKey
from rollbook.records.outcome import Evidence, Failed, Interrupted, Masked, NeverStarted, Scored, Unscored
from rollbook.records.record import Record
from rollbook.records.standing import Standings

KEY = RolloutKey(0, 0)
FAILED = Failed("agent_run_error")
JUDGE = Failed(JUDGE_FAILED)
KILLED = Interrupted("kill_shaped")
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
    assert (coverage.interrupted, coverage.never_started, coverage.in_flight, coverage.untouched) == (1, 1, 1, 3)
    assert coverage.failed_by_class == {"agent_run_error": 2, "judge_failed": 1}


def test_records_beyond_the_plan_break_the_law():
    standings = Standings()
    standings.add(Record(RolloutKey(0, 0), 0, Scored(1.0)))
    standings.add(Record(RolloutKey(1, 0), 0, Scored(1.0)))
    assert not standings.coverage(planned=1).law_holds


def test_failed_attempts_are_counted_and_omitted_ones_are_not():
    standings = Standings()
    for outcome in (FAILED, KILLED, JUDGE, DRAINED, EVIDENCE):
        standings.add(Record(KEY, 0, outcome))
    assert standings.failures_of(KEY) == 2
