"""Rollouts without a result that count as zero."""

import pytest

from rollbook.records.disposition import DEFAULT_RULES, Rules
from rollbook.records.identity import RolloutKey
from rollbook.records.outcome import Evidence, Failed, Interrupted, Masked, NeverStarted, Scored, Unscored
from rollbook.records.place import File, Place
from rollbook.records.record import Record
from rollbook.records.standing import Standings
from rollbook.scoring.imputation import NOTHING_COUNTED, Added, Counting, added, added_row, nameless

JUDGE_FAILED = Failed("judge_failed")
KILLED = Interrupted("kill_shaped", omitted=True)
DRAINED = NeverStarted("budget")
EVIDENCE = Evidence("500")
MARKED = Failed("agent_gave_up", terminal=True, counts_as_zero=True)
ALL_MISSING = Counting(missing=True)
KEY = RolloutKey(0, 0)


def fold(rollouts, *, planned=True, agent="a", server=None):
    standings = Standings()
    for task, outcomes in enumerate(rollouts):
        if planned:
            standings.plan(RolloutKey(task, 0), agent, server)
        for attempt, outcome in enumerate(outcomes):
            standings.add(Record(RolloutKey(task, 0), attempt, outcome, agent=agent, server=server))
    return standings


def whys(standings, counting, rules=DEFAULT_RULES):
    return {one.key.task: one.why for one in added(standings, counting, rules)}


@pytest.mark.parametrize(
    ("outcomes", "by_class", "by_missing"),
    [
        ([JUDGE_FAILED, KILLED], {}, {0: "missing"}),
        ([JUDGE_FAILED, DRAINED], {0: "class"}, {}),
        ([JUDGE_FAILED, EVIDENCE], {0: "class"}, {}),
        ([JUDGE_FAILED, Scored(1.0)], {}, {}),
        ([JUDGE_FAILED, Failed("agent_run_error")], {}, {}),
        ([JUDGE_FAILED], {0: "class"}, {}),
        ([Failed("infrastructure", legacy_class="judge_failed")], {0: "class"}, {}),
        ([MARKED, JUDGE_FAILED], {0: "class"}, {}),
        ([Masked(1.0)], {}, {}),
        ([Unscored()], {}, {}),
        ([], {}, {0: "missing"}),
    ],
)
def test_the_latest_execution_is_chosen_first_and_filtered_then(outcomes, by_class, by_missing):
    standings = fold([outcomes])
    assert whys(standings, Counting(frozenset({"judge_failed"}))) == by_class
    assert whys(standings, ALL_MISSING) == by_missing


@pytest.mark.parametrize("counting", [NOTHING_COUNTED, ALL_MISSING, Counting(frozenset({"other"}))])
def test_a_failure_that_its_producer_marked_counts_whatever_was_chosen(counting):
    assert whys(fold([[MARKED]]), counting) == {0: "mark"}


def test_an_attempt_that_was_sent_and_lost_hides_the_failure_before_it():
    standings = fold([[JUDGE_FAILED]])
    standings.reserved(KEY, 1, session=1)
    assert whys(standings, Counting(frozenset({"judge_failed"}), missing=True)) == {0: "missing"}


def test_a_rollout_in_flight_is_neither_missing_nor_failed():
    standings = fold([[JUDGE_FAILED]])
    standings.reserved(KEY, 1, session=1)
    assert whys(standings, Counting(frozenset({"judge_failed"}), missing=True), Rules(live_session=1)) == {}


def test_repeats_that_run_again_with_their_task_are_counted_where_they_stand():
    standings = fold([[JUDGE_FAILED], []])
    assert whys(standings, ALL_MISSING, Rules(group_scored=True)) == {1: "missing"}


def test_rollouts_come_by_task_and_repeat_in_whatever_order_they_were_planned():
    standings = Standings()
    keys = [RolloutKey(2, 1), RolloutKey(0, 1), RolloutKey(2, 0), RolloutKey(0, 0)]
    for key in keys:
        standings.plan(key, "a")
    assert [one.key for one in added(standings, ALL_MISSING, DEFAULT_RULES)] == sorted(keys)


def test_what_no_plan_holds_counts_only_where_there_is_no_plan_at_all():
    alone = fold([[JUDGE_FAILED]], planned=False)
    beside_a_plan = fold([[JUDGE_FAILED]], planned=False)
    beside_a_plan.plan(RolloutKey(7, 0), "a")
    counting = Counting(frozenset({"judge_failed"}))
    assert whys(alone, counting) == {0: "class"}
    assert whys(beside_a_plan, counting) == {}


def test_a_rollout_of_nobody_is_told_apart_and_not_counted():
    standings = fold([[]], agent=None)
    assert whys(standings, ALL_MISSING) == {}
    assert nameless(standings, ALL_MISSING, DEFAULT_RULES) == 1
    assert nameless(fold([[]]), ALL_MISSING, DEFAULT_RULES) == 0


def test_the_failure_that_counts_is_named_by_its_place():
    place = Place(File.FAILURES, 10, 20, 2)
    standings = fold([[]], agent=None)
    standings.add(Record(KEY, 0, JUDGE_FAILED, agent="b", server="s", place=place))
    assert list(added(standings, Counting(frozenset({"judge_failed"})), DEFAULT_RULES)) == [
        Added(KEY, "b", "s", "class", place)
    ]


FAILURE = {
    "_ng_failure_class": "judge_failed",
    "_ng_failure_http_status": 503,
    "failure_kind": "judge_failed",
    "failure_reason": "late",
    "rollout_failure": {"http_status": 503},
    "mask_sample": True,
    "elapsed_seconds": 4.0,
    "agent_ref": {"name": "a", "type": "t"},
    "_ng_task_index": 0,
    "_ng_rollout_index": 0,
}
TASK = {
    "responses_create_params": {"input": "x"},
    "response": {},
    "_ng_task_index": 0,
    "_ng_rollout_index": 0,
    "_private": 1,
    "subject": "algebra",
    "level": 3,
    "elapsed_seconds": 99,
    "agent_ref": {"name": "a"},
}


def test_the_row_of_a_counted_failure_keeps_what_is_not_about_the_failure():
    row = added_row(Added(KEY, "a", "s", "class", None), FAILURE, TASK, {*TASK} - {"level"})
    assert row == {
        "mask_sample": False,
        "elapsed_seconds": 4.0,
        "agent_ref": {"name": "a", "type": "t"},
        "_ng_task_index": 0,
        "_ng_rollout_index": 0,
        "reward": 0.0,
        "_ng_environment_server": "s",
        "subject": "algebra",
    }


@pytest.mark.parametrize(("reward", "counted"), [(0.25, 0.25), (0, 0), (None, 0.0), ("high", 0.0)])
def test_a_failure_that_has_a_reward_keeps_it(reward, counted):
    assert added_row(Added(KEY, "a", None, "mark", None), FAILURE | {"reward": reward}, None, ())["reward"] == counted


@pytest.mark.parametrize("server", [None, "s"])
def test_the_row_of_a_missing_rollout_says_who_it_is_and_nothing_else(server):
    row = added_row(Added(KEY, "a", server, "missing", None), None, TASK, ())
    stamp = {} if server is None else {"_ng_environment_server": server}
    assert row == {"_ng_task_index": 0, "_ng_rollout_index": 0, "reward": 0.0, "agent_ref": {"name": "a"}} | stamp
