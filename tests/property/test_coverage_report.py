"""The coverage report, whatever happened to the rollouts: one law for the run, its groups and its tasks."""

import math

from hypothesis import given
from hypothesis import strategies as st

from rollbook.live.progress import Progress
from rollbook.records.disposition import Rules
from rollbook.records.event import AttemptEnded, AttemptStarted, RunPlanned
from rollbook.records.identity import RolloutKey
from rollbook.records.outcome import Evidence, Failed, Interrupted, Masked, NeverStarted, Scored, Unscored
from rollbook.records.record import Record
from rollbook.records.standing import Standings
from rollbook.scoring.coverage_report import coverage_report
from rollbook.scoring.imputation import Counting, added
from rollbook.scoring.tally import scores_of

OUTCOMES = st.sampled_from(
    [
        Scored(1.0),
        Scored(0.25),
        Masked(0.5),
        Unscored(),
        Failed("agent_run_error"),
        Failed("judge_failed", saved_answer=True),
        Failed("gone", terminal=True, counts_as_zero=True),
        Failed("canonical", legacy_class="judge_failed"),
        Interrupted("kill_shaped"),
        Interrupted("kill_shaped", omitted=True),
        NeverStarted("budget"),
        Evidence("500"),
        None,
    ]
)
TASKS, REPEATS = 4, 3
KEYS = [RolloutKey(task, repeat) for task in range(TASKS) for repeat in range(REPEATS)]
ATTEMPTS = st.lists(st.tuples(st.sampled_from(KEYS), OUTCOMES), max_size=30)
COUNTINGS = st.builds(Counting, st.frozensets(st.sampled_from(["judge_failed", "agent_run_error"])), st.booleans())


def folded(attempts):
    standings = Standings()
    for key in KEYS:
        standings.plan(key, "ab"[key.task % 2])
    for key, outcome in attempts:
        number = standings.next_attempt(key)
        standings.reserved(key, number, 1)
        if outcome is not None:
            standings.add(Record(key, number, outcome, "r", "a"))
    return standings


def law_holds(counts):
    parts = (counts["scored"], counts["masked"], counts["unscored"], *counts["failed"].values(), counts["missing"])
    return sum(parts) == counts["expected"] and counts["imputed"] <= sum(counts["failed"].values()) + counts["missing"]


@given(ATTEMPTS, COUNTINGS, st.integers(1, 3))
def test_the_classes_of_the_run_of_each_group_and_of_each_task_sum_to_what_was_planned(attempts, counting, cap):
    report = coverage_report(folded(attempts), counting, Rules(cap=cap)).to_json()
    assert report["expected"] == len(KEYS)
    assert all(law_holds(counts) for counts in (report, *report["groups"], *report["tasks"]))
    assert sum(group["expected"] for group in report["groups"]) == len(KEYS)
    assert (
        sum(group["imputed"] for group in report["groups"]) == report["imputed"] == sum(report["imputed_by"].values())
    )
    listed = {task["task"]: task["expected"] - task["scored"] for task in report["tasks"]}
    assert all(listed.values())
    assert sum(listed.values()) == report["expected"] - report["scored"]


@given(ATTEMPTS, COUNTINGS)
def test_the_scores_are_those_of_what_is_scored_and_of_a_zero_for_every_rollout_that_is_added(attempts, counting):
    standings, rules = folded(attempts), Rules()
    zeros = {one.key for one in added(standings, counting, rules)}
    scored = {}
    for key in KEYS:
        outcome = record.outcome if (record := standings.of(key)) is not None else None
        if isinstance(outcome, Scored):
            scored[key] = outcome.reward
    assert not zeros & scored.keys()
    every = scored | dict.fromkeys(zeros, 0.0)
    for agent in scores_of(standings, rules, counting).agents:
        theirs = [reward for key, reward in every.items() if "ab"[key.task % 2] == agent.agent]
        assert agent.imputed == sum("ab"[key.task % 2] == agent.agent for key in zeros)
        assert agent.mean == (math.fsum(theirs) / len(theirs) if theirs else None)
        assert agent.headline().observed.rollouts == len(theirs)


@given(ATTEMPTS)
def test_the_live_number_at_the_end_is_the_number_of_the_report(attempts):
    progress = Progress(0.0)
    standings = folded([])
    progress.add(RunPlanned(TASKS, len(KEYS)))
    done = set()
    for key, outcome in attempts:
        if outcome is None or key in done:
            continue
        number = standings.next_attempt(key)
        standings.reserved(key, number, 1)
        progress.add(AttemptStarted(key, number, 0.0))
        record = Record(key, number, outcome, "r", "a")
        standings.add(record)
        progress.add(AttemptEnded(record, 0.0, 0.0))
        done.add(key)
    live = progress.snapshot(1.0)
    scores = [agent.headline().observed for agent in scores_of(standings, Rules()).agents if agent.mean is not None]
    measured = sum(score.rollouts for score in scores)
    assert live.scored + live.zeros == measured
    final = sum(score.mean * score.rollouts for score in scores) / measured if measured else None
    assert (live.mean_reward is None) is (final is None)
    assert final is None or math.isclose(live.mean_reward, final)
