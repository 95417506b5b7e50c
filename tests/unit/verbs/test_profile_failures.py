"""Failures in profiles: those that are a score of 0 measure, the others are missing, with a plan and without."""

import json

import pytest

from rollbook.ledger.paths import agent_metrics_path_for, reward_profiling_path_for
from rollbook.report.profile_text import profile_json
from rollbook.verbs.profile import profile
from rollbook.verbs.profile_run import ProfileError, run_at
from rollbook.verbs.status import run_status
from unit.verbs.profiled import lines_of, planned, row, write_run

MARK = {"_ng_failure_counts_as_zero": True, "_ng_failure_terminal": True}


def failed(task, rollout, **fields):
    return row(task, rollout, _ng_failure_class="timeout_exceeded") | fields


def profiled(output, **asked):
    return profile([run_at(output)], output, **asked)


def half_marked(tmp_path):
    plan = [planned(task, repeat, level=task) for task in range(4) for repeat in range(2)]
    results = [row(task, 0, 1.0, level=task) for task in range(4)]
    return write_run(tmp_path / "r.jsonl", plan, results, [failed(task, 1, **MARK) for task in range(4)])


def test_a_failure_that_is_marked_as_a_score_counts_in_every_mean_and_pass_rate(tmp_path):
    run = half_marked(tmp_path)
    [label] = profiled(run).labels

    [metrics] = json.loads(agent_metrics_path_for(run).read_text())
    tasks = lines_of(reward_profiling_path_for(run))
    assert (label.mean_reward, metrics["mean/reward"], label.complete, label.scored, label.zeros) == (0.5, 0.5, 4, 4, 4)
    assert [task["pass_at_k"] for task in tasks] == [{"1": 0.5, "2": 1.0}] * 4
    assert [(task["mean/reward"], task["mean/level"]) for task in tasks] == [(0.5, level) for level in range(4)]
    assert run_status(run).groups[0].mean_reward == 0.5


def test_a_failure_that_is_marked_as_a_score_decides_which_tasks_are_kept(tmp_path):
    came_to = profiled(half_marked(tmp_path), keep="mean>0.9")

    assert (came_to.kept.kept, came_to.kept.dropped) == (0, 4)
    assert profile_json(came_to)["agents"][0]["imputed"] == 4


def test_a_mark_of_an_earlier_attempt_does_not_count(tmp_path):
    failures = [failed(0, 1, **MARK), failed(0, 1)]
    run = write_run(tmp_path / "r.jsonl", [planned(0, 0), planned(0, 1)], [row(0, 0, 1.0)], failures)

    with pytest.raises(ProfileError, match="1 of 2 planned"):
        profiled(run)


def test_a_result_wins_over_a_mark(tmp_path):
    run = write_run(tmp_path / "r.jsonl", [planned(0, 0)], [row(0, 0, 1.0)], [failed(0, 0, **MARK)])

    assert profiled(run).labels[0].mean_reward == 1.0


def test_a_task_of_nothing_but_marked_failures_has_a_mean_of_zero(tmp_path):
    run = write_run(tmp_path / "r.jsonl", [planned(0, 0), planned(1, 0)], [row(0, 0, 1.0)], [failed(1, 0, **MARK)])

    assert [label.mean_reward for label in profiled(run).labels] == [0.5]


def test_without_a_plan_what_failed_counts_as_planned(tmp_path):
    run = write_run(tmp_path / "r.jsonl", [], [row(0, 0, 1.0)], [failed(1, 0), failed(2, 0)])

    with pytest.raises(ProfileError, match="2 of 3 planned"):
        profiled(run)
    [label] = profiled(run, allow_partial_rollouts=True).labels
    assert (label.complete, label.missing, label.found, label.planned) == (1, 2, 1, 3)


def test_without_a_plan_a_marked_failure_measures(tmp_path):
    run = write_run(tmp_path / "r.jsonl", [], [row(0, 0, 1.0)], [failed(1, 0, **MARK)])

    assert [label.mean_reward for label in profiled(run).labels] == [0.5]
