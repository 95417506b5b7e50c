"""Records folded into scores."""

import math

import pytest

from rollbook.records.disposition import Rules
from rollbook.records.identity import RolloutKey
from rollbook.records.outcome import Evidence, Failed, Interrupted, Masked, NeverStarted, Scored, Unscored
from rollbook.records.record import Record
from rollbook.records.standing import Coverage, Standings
from rollbook.scoring.estimates import PassAtK
from rollbook.scoring.tally import NO_AGENT, Tally
from rollbook.scoring.tally import scores_of as scored


def scores_of(outcomes, agent="a"):
    tally = Tally()
    for (task, rollout), outcome in outcomes.items():
        tally.add(Record(RolloutKey(task, rollout), 0, outcome, agent=agent))
    return tally.scores()


def rewards(*tasks):
    return {
        (task, rollout): Scored(reward) for task, values in enumerate(tasks) for rollout, reward in enumerate(values)
    }


def error_of(tasks):
    agents = scores_of(rewards(*tasks)).agents
    return agents[0].standard_error if agents else None


FAILED = Failed("agent_run_error")
HALF_FAILED = {
    **rewards([1.0, 1.0], [1.0, 1.0], [1.0]),
    (2, 1): FAILED,
    (3, 0): FAILED,
    (3, 1): FAILED,
}


def test_failed_rollouts_are_counted_beside_the_mean_and_never_in_it():
    [agent] = scores_of(HALF_FAILED).agents
    assert agent.mean == 1.0
    assert agent.coverage == Coverage(
        planned=8, scored=5, failed=3, retryable=3, failed_by_class={"agent_run_error": 3}
    )
    assert (agent.scored_tasks, agent.tasks) == (3, 4)


def test_a_task_of_which_every_rollout_failed_is_listed_first_among_the_worst():
    scores = scores_of(HALF_FAILED | {(4, 0): Scored(0.0)})
    assert [(task.task, task.mean) for task in scores.worst_tasks(2)] == [(3, None), (4, 0.0)]
    assert scores.worst_tasks(2)[0].coverage.scored == 0
    assert scores.worst_tasks(2)[0].coverage.planned == 2


def test_tasks_that_do_best_are_not_among_the_worst_and_one_that_left_nothing_comes_first():
    scores = scores_of({(0, 0): Scored(1.0), (1, 0): Scored(0.5), (2, 0): Evidence("note")})
    assert [task.task for task in scores.worst_tasks(9)] == [2, 1]


@pytest.mark.parametrize(
    ("outcome", "part"),
    [
        (Scored(0.0), "scored"),
        (Masked(1.0), "masked"),
        (Unscored(), "unscored"),
        (FAILED, "failed"),
        (Interrupted("kill_shaped"), "interrupted"),
        (NeverStarted("drained"), "never_started"),
        (Evidence("note"), "interrupted"),
    ],
)
def test_every_outcome_is_counted_in_one_part(outcome, part):
    coverage = scores_of({(0, 0): outcome}).agents[0].coverage
    assert coverage.law_holds
    assert getattr(coverage, part) == 1


def test_only_a_scored_rollout_has_a_reward():
    outcomes = {(0, 0): Scored(0.25), (0, 1): Masked(1.0), (0, 2): Unscored(), (0, 3): FAILED}
    assert scores_of(outcomes).agents[0].mean == 0.25
    assert scores_of({(0, 0): Masked(1.0)}).agents[0].mean is None


def test_a_later_result_of_the_same_rollout_stands_in_for_its_failure():
    tally = Tally()
    tally.add(Record(RolloutKey(0, 0), 0, FAILED, agent="a"))
    tally.add(Record(RolloutKey(0, 0), 1, Scored(1.0), agent="a"))
    assert tally.scores().agents[0].coverage == Coverage(planned=1, scored=1)


def test_with_one_rollout_a_task_the_error_is_the_plain_one():
    values = [0.0, 1.0, 1.0, 0.5]
    [agent] = scores_of(rewards(*[[value] for value in values])).agents
    mean = sum(values) / 4
    assert agent.standard_error == pytest.approx(math.sqrt(sum((v - mean) ** 2 for v in values) / 3) / 2)


def test_repeats_that_agree_say_no_more_than_one_rollout_would():
    once, often = [[0.0], [1.0], [1.0]], [[0.0] * 8, [1.0] * 8, [1.0] * 8]
    assert error_of(often) == pytest.approx(error_of(once))


def test_a_worked_clustered_error():
    # mean 0.6; sums of deviations: -0.2, -0.6, 0.8; (0.04 + 0.36 + 0.64) * 3/2 = 1.56
    assert error_of([[1.0, 0.0], [0.0], [1.0, 1.0]]) == pytest.approx(math.sqrt(1.56) / 5)


@pytest.mark.parametrize("tasks", [[], [[]], [[1.0, 0.0]], [[1.0], []], [[1.6e308], [-1.6e308]]])
def test_an_error_that_is_undefined_is_none(tasks):
    assert error_of(tasks) is None


def test_pass_at_k_goes_by_powers_of_two_and_says_how_many_tasks_are_short():
    outcomes = rewards([0.0, 0.0], [1.0, 0.0, 0.0, 0.0], [1.0]) | {(0, 2): FAILED, (0, 3): FAILED, (0, 4): FAILED}
    assert scores_of(outcomes).agents[0].pass_at_k == (
        PassAtK(k=1, value=pytest.approx(1.25 / 3), tasks=3, short_tasks=0),
        PassAtK(k=2, value=pytest.approx(0.25), tasks=2, short_tasks=1),
        PassAtK(k=4, value=1.0, tasks=1, short_tasks=2),
    )


def test_a_k_for_which_no_task_has_enough_rollouts_has_no_value():
    outcomes = {(0, 0): Scored(1.0), (0, 1): FAILED}
    assert scores_of(outcomes).agents[0].pass_at_k[1] == PassAtK(k=2, value=None, tasks=0, short_tasks=1)


@pytest.mark.parametrize("outcomes", [{(0, 0): Scored(0.5)}, {(0, 0): FAILED}])
def test_without_binary_rewards_there_is_no_pass_at_k(outcomes):
    assert scores_of(outcomes).agents[0].pass_at_k == ()


def test_agents_are_scored_apart_and_a_record_without_an_agent_has_a_place():
    tally = Tally()
    for index, agent in enumerate(["b", None, "a"]):
        tally.add(Record(RolloutKey(index, 0), 0, Scored(float(index)), agent=agent))
    assert [(score.agent, score.mean) for score in tally.scores().agents] == [(NO_AGENT, 1.0), ("a", 2.0), ("b", 0.0)]


def test_nothing_folded_has_no_scores():
    assert (Tally().scores().agents, Tally().scores().worst_tasks(3)) == ((), ())


# What was planned.


def a_stopped_run(*, told_each):
    """Plan four tasks for a and two for b, of which a scored two and failed in one, and the rest was not started."""
    standings = Standings()
    for task in range(6):
        standings.plan(RolloutKey(task, 0), "a" if task < 4 else "b", "env")
    for task, outcome in enumerate([Scored(1.0), Scored(0.0), FAILED]):
        standings.reserved(RolloutKey(task, 0), 0)
        standings.add(Record(RolloutKey(task, 0), 0, outcome, "r", agent="a"))
    if told_each:
        for task in range(3, 6):
            agent = "a" if task < 4 else "b"
            standings.add(Record(RolloutKey(task, 0), 0, NeverStarted("drained"), "r", agent=agent))
    standings.stopped("drained")
    return standings


@pytest.mark.parametrize("told_each", [False, True])
def test_what_was_never_started_counts_in_its_agents_share_whether_or_not_that_was_written_down(told_each):
    standings = a_stopped_run(told_each=told_each)
    first, second = scored(standings).agents
    assert (first.agent, first.tasks, first.scored_tasks) == ("a", 4, 2)
    assert first.coverage == Coverage(
        4, scored=2, failed=1, retryable=1, never_started=1, failed_by_class={"agent_run_error": 1}
    )
    assert (second.agent, second.tasks, second.mean) == ("b", 2, None)
    assert second.coverage == Coverage(2, never_started=2)
    groups, _ = standings.counted()
    assert [first.coverage, second.coverage] == [group.coverage for group in groups]


@pytest.mark.parametrize("told_each", [False, True])
def test_a_task_that_was_never_started_is_no_task_to_look_at(told_each):
    assert [task.task for task in scored(a_stopped_run(told_each=told_each)).worst] == [2, 1]


def test_what_the_rules_settle_is_settled_in_the_share_of_its_agent():
    standings = a_stopped_run(told_each=False)
    first, _ = scored(standings, Rules(cap=1)).agents
    assert (first.coverage.exhausted, first.coverage.retryable) == (1, 0)


def test_a_rollout_that_left_no_word_is_interrupted_in_the_share_of_its_task():
    standings = Standings()
    for rollout in range(2):
        standings.plan(RolloutKey(0, rollout), "a")
        standings.reserved(RolloutKey(0, rollout), 0)
    standings.add(Record(RolloutKey(0, 0), 0, FAILED, "r", agent="a"))
    [task] = scored(standings).worst
    assert (task.coverage.planned, task.coverage.failed, task.coverage.interrupted) == (2, 1, 1)
