"""Whose a rollout is that the plan does not say: counts by agent and environment server."""

from rollbook.records.identity import RolloutKey
from rollbook.records.outcome import Failed, Scored
from rollbook.records.record import Record
from rollbook.records.standing import Standings


def folded(*records, plan=()):
    standings = Standings()
    for task, agent, server in plan:
        standings.plan(RolloutKey(task, 0), agent, server)
    for task, outcome, agent, server in records:
        standings.add(Record(RolloutKey(task, 0), 0, outcome, None, agent, server))
    return standings


def told(standings, **how):
    groups, _ = standings.counted(**how)
    return {(one.agent, one.server): (one.coverage.scored, one.coverage.planned, one.mean_reward) for one in groups}


def test_results_of_two_servers_are_not_booked_on_one():
    plan = [(task, "a", None) for task in range(4)]
    standings = folded((0, Scored(1.0), "a", "s0"), (1, Scored(0.0), "a", "s1"), (2, Scored(0.5), "a", "s0"), plan=plan)

    assert told(standings) == {("a", None): (0, 1, None), ("a", "s0"): (2, 2, 0.75), ("a", "s1"): (1, 1, 0.0)}


def test_what_was_not_run_belongs_to_the_only_server_that_answered():
    standings = folded(
        (0, Scored(1.0), "a", "s0"), (1, Failed("x"), "a", None), plan=[(n, "a", None) for n in range(3)]
    )

    assert told(standings) == {("a", "s0"): (1, 3, 1.0)}


def test_the_servers_of_the_plan_go_first():
    standings = folded((0, Scored(1.0), "b", "other"), plan=[(0, "a", "s0"), (1, "a", "s1")])

    assert told(standings) == {("a", "s0"): (1, 1, 1.0), ("a", "s1"): (0, 1, None)}


def test_without_a_plan_records_say_whose_a_rollout_is():
    standings = folded((0, Scored(1.0), "a", "s0"), (1, Scored(0.0), "b", "s0"), (2, Failed("x"), "a", None))

    assert told(standings, of_plan_only=False) == {("a", "s0"): (1, 2, 1.0), ("b", "s0"): (1, 1, 0.0)}
