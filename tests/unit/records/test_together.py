"""Tasks whose repeats are scored together: a broken one runs again whole, a whole one is left alone."""

import pytest

from rollbook.records.columns import packed
from rollbook.records.disposition import Disposition, Rules
from rollbook.records.failure_kinds import JUDGE_FAILED
from rollbook.records.identity import RolloutKey
from rollbook.records.outcome import Failed, Interrupted, Masked, NeverStarted, Scored, Unscored
from rollbook.records.record import Record
from rollbook.records.run_status import DONE, INCOMPLETE, RESUMABLE, code_of, not_owed_by, owed_by, summed
from rollbook.records.standing import Standings

TOGETHER = Rules(group_scored=True)
FAILED, SETTLED = Failed("agent_run_error"), Failed("skipped", terminal=True)
JUDGE = Failed(JUDGE_FAILED)
LOST, UNTOUCHED = object(), None


class Group:
    """The rollouts of task 0, and a task 1 that nothing is the matter with."""

    def __init__(self, size=4):
        self.size, self.standings = size, Standings()
        for task, rollouts in ((0, size), (1, 2)):
            for rollout in range(rollouts):
                self.standings.plan(RolloutKey(task, rollout), "a")
        for rollout in range(2):
            self.ran(RolloutKey(1, rollout), Scored(1.0), session=1)

    def ran(self, key, outcome, session):
        attempt = self.standings.next_attempt(key)
        self.standings.reserved(key, attempt, session)
        if outcome is not LOST:
            self.standings.add(Record(key, attempt, outcome, "r", "a"))

    def went(self, *outcomes, session=1):
        for rollout, outcome in enumerate(outcomes):
            if outcome is not UNTOUCHED:
                self.ran(RolloutKey(0, rollout), outcome, session)
        return self

    def owed(self, rules=TOGETHER):
        """Return the owed repeats of task 0; the fold's answers, of which there are three, agree."""
        keys = [RolloutKey(0, rollout) for rollout in range(self.size)]
        found = [key.rollout for key in keys if self.standings.standing(key, rules).is_owed]
        is_owed = self.standings.owed_test(rules)
        assert [key.rollout for key in keys if is_owed(packed(0, key.rollout))] == found
        assert not any(is_owed(packed(1, rollout)) for rollout in range(2))
        coverage = self.standings.coverage(rules=rules)
        assert coverage.law_holds
        assert coverage.owed == sum(owed_by(coverage).values()) == len(found)
        left = coverage.owed + coverage.in_flight + sum(not_owed_by(coverage).values())
        assert left == coverage.planned
        return found


WHOLE = [0, 1, 2, 3]


@pytest.mark.parametrize(
    "outcomes",
    [
        (Scored(1.0), Scored(0.0), LOST, LOST),
        (Scored(1.0), Scored(1.0), Scored(1.0), UNTOUCHED),
        (Scored(1.0), Masked(1.0), Unscored(), FAILED),
        (Scored(1.0), SETTLED, Scored(1.0), FAILED),
        (JUDGE, Scored(1.0), Interrupted("kill_shaped"), FAILED),
        (Scored(1.0), Scored(1.0), Scored(1.0), NeverStarted("drained")),
    ],
)
def test_a_task_of_which_something_is_owed_runs_again_whole(outcomes):
    assert Group().went(*outcomes).owed() == WHOLE


@pytest.mark.parametrize(
    "outcomes",
    [
        (Scored(1.0), Scored(1.0), Scored(0.0), Scored(0.0)),
        (Scored(1.0), Masked(1.0), Unscored(), Scored(1.0)),
        (Scored(1.0), SETTLED, SETTLED, Scored(1.0)),
        (Scored(1.0), JUDGE, Scored(1.0), Scored(1.0)),
    ],
)
def test_a_task_of_which_nothing_is_owed_is_left_alone(outcomes):
    assert Group().went(*outcomes).owed() == []


def test_without_the_option_only_what_is_owed_runs():
    assert Group().went(Scored(1.0), SETTLED, FAILED, UNTOUCHED).owed(Rules()) == [2, 3]


def test_results_of_two_sessions_were_not_scored_together():
    group = Group().went(Scored(1.0), Scored(1.0), FAILED, FAILED)
    assert group.went(UNTOUCHED, UNTOUCHED, Scored(1.0), Scored(1.0), session=2).owed() == WHOLE


def test_a_task_that_ran_again_whole_is_whole():
    group = Group().went(Scored(1.0), Scored(1.0), FAILED, LOST)
    again = group.went(*[Scored(0.5)] * 4, session=2)
    assert again.owed() == []
    assert again.standings.of(RolloutKey(0, 0)).outcome == Scored(0.5)


def test_a_result_whose_next_attempt_was_lost_is_stale():
    group = Group().went(Scored(1.0), Scored(1.0), FAILED, FAILED)
    assert group.went(LOST, LOST, Scored(1.0), Scored(1.0), session=2).owed() == WHOLE


def test_while_a_task_is_sent_again_the_rest_of_it_is_still_owed_and_nothing_is_sent_twice():
    rules = Rules(group_scored=True, live_session=2)
    group = Group().went(Scored(1.0), SETTLED, Scored(1.0), FAILED)
    for sent in range(4):
        assert group.owed(rules) == WHOLE[sent:]
        group.ran(RolloutKey(0, sent), LOST, session=2)
    assert group.owed(rules) == []
    assert {group.standings.standing(RolloutKey(0, n), rules).disposition for n in range(4)} == {Disposition.IN_FLIGHT}


def test_repeats_that_are_planned_later_send_the_whole_task():
    group = Group().went(*[Scored(1.0)] * 4)
    group.standings.plan(RolloutKey(0, 4), "a")
    group.size = 5
    assert group.owed() == [0, 1, 2, 3, 4]


def test_a_record_beyond_the_plan_goes_along_with_no_task():
    group = Group(size=2).went(Scored(1.0), FAILED)
    group.standings.add(Record(RolloutKey(0, 2), 0, Scored(1.0), "r", "a"))
    assert not group.standings.standing(RolloutKey(0, 2), TOGETHER).is_owed
    assert not group.standings.owed_test(TOGETHER)(packed(0, 2))


def test_what_runs_again_with_its_task_is_counted_by_where_it_stands_and_by_agent():
    group = Group().went(Scored(1.0), SETTLED, Scored(0.5), FAILED)
    (count,), _ = group.standings.counted(TOGETHER)
    assert count.with_task == {Disposition.SCORED: 2, Disposition.SETTLED: 1}
    assert (count.rewards, count.rewards_with_task) == (3.5, 1.5)
    coverage = count.coverage
    assert coverage.with_task == {"scored": 2, "settled": 1}
    assert not_owed_by(coverage) == {"scored": 2}
    assert owed_by(coverage) == {"retryable": 1, "of a task that runs again whole": 3}
    assert summed([coverage, coverage]).with_task == {"scored": 4, "settled": 2}


def test_a_run_whose_results_are_stale_is_to_be_resumed_and_is_not_complete():
    group = Group().went(*[Scored(1.0)] * 4).went(Scored(1.0), session=2)
    coverage = group.standings.coverage(rules=TOGETHER)
    assert coverage.scored == coverage.planned
    assert code_of(coverage) == RESUMABLE
    assert code_of(coverage, require_complete=True) == INCOMPLETE
    assert code_of(group.standings.coverage()) == DONE


def test_the_largest_task_is_told_with_its_size():
    assert Group().standings.largest_task() == (0, 4)
    assert Standings().largest_task() is None
