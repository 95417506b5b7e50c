"""Pass rates: few samples (RC-74), no answer (RC-76), turns (RC-77), independent runs (RC-81), short shards (RC-82)."""

import json

import pytest

from rollbook import compute_pass_majority_metrics
from rollbook.cli.entry import exit_code_of
from unit.verbs.profiled import planned, row, write_run


def profiled(capsys, *words):
    code = exit_code_of(["eval", "profile", *words, "--json"])
    said = capsys.readouterr()
    return code, json.loads(said.out) if code == 0 else said.err


def run_of(folder, rewards, **fields):
    """Write a run of tasks with these rewards, as many rollouts planned of each as it has."""
    keys = [(task, number) for task, held in enumerate(rewards) for number in range(len(held))]
    rows = [row(task, number, float(rewards[task][number]), **fields) for task, number in keys]
    return str(write_run(folder / "r.jsonl", [planned(*key, **fields) for key in keys], rows))


def test_pass_at_k_is_told_only_of_tasks_with_k_samples_and_the_others_are_counted(tmp_path, capsys):
    _, told = profiled(capsys, run_of(tmp_path, [[0, 0], [1, 0, 0, 0], [1]]), "--keep", "pass@5 >= 0")

    [label] = told["agents"]
    errors = [rate.pop("standard_error") for rate in label["pass_at_k"]]
    assert errors == [pytest.approx(0.30046, abs=1e-5), pytest.approx(0.25), None]
    assert label["pass_at_k"] == [
        {"k": 1, "value": pytest.approx(1.25 / 3), "tasks": 3, "short_tasks": 0},
        {"k": 2, "value": 0.25, "tasks": 2, "short_tasks": 1},
        {"k": 4, "value": 1.0, "tasks": 1, "short_tasks": 2},
    ]
    assert told["keep"]["kept"] == told["keep"]["dropped"] == 0
    assert told["keep"]["undefined"] == {"pass@5 of fewer than 5 rollouts": 3}


def test_pass_at_k_rises_with_k_over_the_same_tasks(tmp_path, capsys):
    _, told = profiled(capsys, run_of(tmp_path, [[0, 0, 1, 0], [1, 1, 0, 0], [0, 0, 0, 0]]))

    rates = [rate["value"] for rate in told["agents"][0]["pass_at_k"]]
    assert rates == sorted(rates)


def test_a_rollout_without_an_answer_passes_by_its_reward_has_no_vote_and_is_shown(tmp_path, capsys):
    tasks = [
        [{"reward": 1, "answer": None}, {"reward": 1, "answer": None}],
        [{"reward": 0, "answer": "x"}, {"reward": 1, "answer": "y"}],
    ]
    metrics, *_ = compute_pass_majority_metrics(tasks, answer_key="answer")

    assert (metrics["pass@2/accuracy"], metrics["majority@2/accuracy"]) == (100.0, 25.0)
    assert metrics["pass@1[avg-of-2]/no_answer"] == 50.0
    _, told = profiled(capsys, run_of(tmp_path, [[1, 1], [0, 1]]))
    assert told["agents"][0]["pass_at_k"][1]["value"] == 1.0


def test_a_rollout_of_many_turns_is_one_sample(tmp_path, capsys):
    keys = [(0, 0, 30), (0, 1, 1), (1, 0, 1)]
    rows = [
        row(t, n, float(turns == 1), ng_trajectory={"turns": [{"reward": 0}] * turns}, num_turns=turns)
        for t, n, turns in keys
    ]
    run = write_run(tmp_path / "r.jsonl", [planned(t, n) for t, n, _ in keys], rows)
    _, told = profiled(capsys, str(run))

    assert told["agents"][0]["mean_reward"] == pytest.approx(2 / 3)


def test_independent_runs_that_number_their_tasks_from_0_keep_their_own(tmp_path, capsys):
    a = run_of(tmp_path / "a", [[1], [1], [1]])
    b = write_run(
        tmp_path / "b" / "r.jsonl",
        [planned(task, 0, agent_ref={"name": "b"}) for task in range(3)],
        [row(task, 0, 1.0, agent_ref={"name": "b"}) for task in (0, 2)],
    )
    code, told = profiled(capsys, a, str(b), "-o", str(tmp_path / "all.jsonl"), "--allow-partial-rollouts")

    assert code == 0
    assert [(one["agent"], one["scored"], one["expected"]) for one in told["agents"]] == [*(("a", 3, 3), ("b", 2, 3))]


def test_a_short_shard_is_refused_and_a_pattern_that_matches_nothing_is_a_mistake(tmp_path, capsys):
    run = run_of(tmp_path / "a", [[1, 0]])
    lines = (tmp_path / "a" / "r.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "a" / "r.jsonl").write_text(lines[0])

    assert profiled(capsys, run)[0] == 1
    assert profiled(capsys, str(tmp_path / "no*.jsonl"))[0] == 2
