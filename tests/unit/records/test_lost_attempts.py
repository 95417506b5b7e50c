"""An attempt that was handed out later and did not end: what it hides, and what a person's decision changes."""

import pytest

from rollbook.records.disposition import Disposition, Rules
from rollbook.records.failure_kinds import JUDGE_FAILED, Delivery
from rollbook.records.identity import RolloutKey
from rollbook.records.outcome import Failed, Interrupted, Masked, Scored, Unscored
from rollbook.records.record import Record
from rollbook.records.standing import Standings

KEY = RolloutKey(0, 0)
HELD = Interrupted("kill_shaped", "", Delivery.POSSIBLY_DELIVERED)
FAILED = Failed("agent_run_error")
APPROVED = Rules(rerun_masked=frozenset({(0, 0, 0)}))


def folded(outcome, *, lost=True):
    standings = Standings()
    standings.plan(KEY)
    standings.reserved(KEY, 0)
    standings.add(Record(KEY, 0, outcome, "r"))
    if lost:
        standings.reserved(KEY, 1)
    return standings


@pytest.mark.parametrize(
    ("outcome", "rules", "before", "after"),
    [
        (FAILED, Rules(), Disposition.RETRYABLE, Disposition.INTERRUPTED),
        (Failed(JUDGE_FAILED), Rules(), Disposition.HELD, Disposition.INTERRUPTED),
        (HELD, Rules(), Disposition.HELD_INTERRUPTED, Disposition.INTERRUPTED),
        (Failed("skipped", terminal=True), Rules(), Disposition.SETTLED, Disposition.SETTLED),
        (FAILED, Rules(cap=1), Disposition.EXHAUSTED, Disposition.EXHAUSTED),
        (Scored(1.0), Rules(), Disposition.SCORED, Disposition.SCORED),
        (Masked(1.0), Rules(), Disposition.MASKED, Disposition.MASKED),
        (Masked(1.0), APPROVED, Disposition.APPROVED, Disposition.APPROVED),
        (Unscored(), Rules(), Disposition.UNSCORED, Disposition.UNSCORED),
    ],
    ids=lambda value: value.value if isinstance(value, Disposition) else "",
)
def test_a_lost_attempt_hides_what_is_neither_a_result_nor_an_end_for_good(outcome, rules, before, after):
    assert folded(outcome, lost=False).standing(KEY, rules).disposition is before
    assert folded(outcome).standing(KEY, rules).disposition is after


@pytest.mark.parametrize(
    ("outcome", "rules", "counted"),
    [
        (Failed(JUDGE_FAILED), Rules(released=frozenset({(1, 0, 0)})), ("retryable", "held")),
        (Masked(1.0), Rules(rerun_masked=frozenset({(1, 0, 0)})), ("approved", "masked")),
    ],
)
def test_one_of_many_alike_that_a_person_decided_about_is_counted_apart(outcome, rules, counted):
    standings = Standings()
    for task in range(4):
        key = RolloutKey(task, 0)
        standings.plan(key)
        standings.reserved(key, 0)
        standings.add(Record(key, 0, outcome, "r"))
    coverage = standings.coverage(rules=rules)
    one, rest = counted
    assert getattr(coverage, one) == 1
    assert getattr(coverage, rest) == (3 if rest == "held" else 4)
    assert coverage.owed == 1
    assert coverage.law_holds


def test_a_rollout_is_retried_whichever_of_its_numbers_the_log_or_the_records_tell():
    standings = Standings()
    for attempt in range(2):
        standings.add(Record(KEY, 0, FAILED, None))
        assert standings.columns.attempts.repeated() == attempt
