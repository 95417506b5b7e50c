"""pass@k, average and majority of k."""

import pytest

from rollbook.scoring.pass_at_k import (
    add_avg_sample_std_dev,
    compute_pass_majority_metrics,
    compute_subset_metrics,
    highest_k_metrics,
    pass_at_k,
)


def tasks_of(rewards, answers=None):
    answers = answers or [[None] * len(task) for task in rewards]
    return [
        [{"reward": reward, "answer": answer} for reward, answer in zip(*task, strict=True)]
        for task in zip(rewards, answers, strict=True)
    ]


THREE_TRIES = tasks_of([[1, 0, 1], [0, 0, 1]], [["x", "y", "x"], [None, "z", "w"]])
TWO_TRIES = tasks_of([[1, 0], [1, 1]], [["x", "y"], ["z", "z"]])


def test_two_tasks_of_three_rollouts_have_the_metrics_of_the_field():
    metrics, scores, names, max_k = compute_pass_majority_metrics(THREE_TRIES, answer_key="answer")
    expected = {
        "pass@1/accuracy": 50,
        "pass@2/accuracy": 250 / 3,
        "pass@3/accuracy": 100,
        "pass@1[avg-of-2]/accuracy": 25,
        "pass@1[avg-of-3]/accuracy": 50,
        "majority@1/accuracy": 50,
        "majority@2/accuracy": 25,
        "majority@3/accuracy": 75,
        "pass@1/no_answer": 50 / 3,
        "pass@1[avg-of-1]/no_answer": 50,
        "pass@1[avg-of-3]/accuracy/std_dev_across_runs": 50,
        "pass@1[avg-of-3]/accuracy/std_err_across_runs": 50 / 3**0.5,
    }
    assert {name: metrics[name] for name in expected} == pytest.approx(expected)
    assert metrics["per_sample_aggregate"]["accuracy"] == [50, 0, 100]
    assert (names, max_k) == (["accuracy", "no_answer"], 3)
    assert scores[1][0] == {"accuracy": 0, "no_answer": 1}


def test_two_tasks_of_two_rollouts_have_the_metrics_of_the_field():
    metrics = compute_pass_majority_metrics(TWO_TRIES, answer_key="answer")[0]
    expected = {
        "pass@1/accuracy": 75,
        "pass@2/accuracy": 100,
        "pass@1[avg-of-1]/accuracy": 100,
        "pass@1[avg-of-2]/accuracy": 75,
        "majority@1/accuracy": 100,
        "majority@2/accuracy": 75,
        "pass@1[avg-of-2]/accuracy/std_dev_across_runs": 50 / 2**0.5,
        "pass@1[avg-of-2]/accuracy/std_err_across_runs": 25,
    }
    assert {name: metrics[name] for name in expected} == pytest.approx(expected)
    assert "pass@1[avg-of-1]/accuracy/std_dev_across_runs" not in metrics


def test_values_that_are_not_binary_count_by_the_best_of_the_first_k():
    metrics = compute_pass_majority_metrics(tasks_of([[0.5, 1, 0], [1, 0, 0]]))[0]
    assert [metrics[f"pass@{k}/accuracy"] for k in (1, 2, 3)] == pytest.approx([125 / 3, 250 / 3, 100])


def test_without_answers_a_right_rollout_passes_and_has_no_vote():
    tasks = tasks_of([[1, 1], [0, 1]], [[None, None], ["x", "y"]])
    metrics = compute_pass_majority_metrics(tasks, answer_key="answer")[0]
    assert metrics["pass@2/accuracy"] == 100
    assert metrics["majority@2/accuracy"] == 25
    assert metrics["pass@2/no_answer"] == 50


def test_only_tasks_with_at_least_k_rollouts_count():
    metrics = compute_pass_majority_metrics(tasks_of([[0, 0], [1, 0, 0, 0], [1]]), answer_key="answer")[0]
    assert metrics["pass@2/accuracy"] == pytest.approx(25)
    assert metrics["pass@4/accuracy"] == 100
    assert "pass@5/accuracy" not in metrics
    assert metrics["pass@1[avg-of-2]/accuracy"] == 25


@pytest.mark.parametrize(
    ("n", "correct", "k", "chance"), [(4, 1, 2, 0.5), (2, 0, 2, 0.0), (1, 1, 1, 1.0), (5, 2, 4, 1.0), (4, 2, 1, 0.5)]
)
def test_the_estimator_is_exact(n, correct, k, chance):
    assert pass_at_k(n, correct, k) == pytest.approx(chance)


def test_answers_that_are_lists_can_vote():
    tasks = tasks_of([[1, 1, 0]], [[["a"], ["a"], ["b"]]])
    assert compute_pass_majority_metrics(tasks, answer_key="answer")[0]["majority@3/accuracy"] == 100


def test_a_flag_is_a_score_and_a_rollout_without_a_reward_is_no_zero():
    metrics, scores, _, _ = compute_pass_majority_metrics([[{"ok": True}, {"ok": False}]], lambda rollout: rollout)
    assert scores == [[{"ok": 1}, {"ok": 0}]]
    assert metrics["pass@2/ok"] == 100
    assert compute_pass_majority_metrics([[{"reward": 1.0}, {}]])[0]["pass@1/accuracy"] == 100


def test_a_score_that_is_no_number_is_no_score():
    tasks = [[{"a": None, "b": 1}, {"a": float("nan"), "b": "1"}, {"a": 1, "b": 1}]]
    metrics, scores, _, _ = compute_pass_majority_metrics(tasks, lambda rollout: rollout)
    assert scores == [[{"b": 1}, {}, {"a": 1, "b": 1}]]
    assert (metrics["pass@1/a"], metrics["pass@2/b"]) == (100, 100)


def test_no_tasks_have_no_metrics():
    assert compute_pass_majority_metrics([]) == ({}, [], [], 0)


def test_the_deviation_inside_tasks_is_the_mean_of_their_sample_deviations():
    metrics, scores, names, max_k = compute_pass_majority_metrics(tasks_of([[1, 0], [1, 1]]))
    add_avg_sample_std_dev(metrics, scores, names, max_k)
    assert metrics["pass@1[avg-of-2]/accuracy/avg_sample_std_dev"] == pytest.approx(50 / 2**0.5)
    assert "pass@1[avg-of-1]/accuracy/avg_sample_std_dev" not in metrics


def test_subsets_are_named_by_the_first_rollout_that_has_the_field():
    tasks = [[{"reward": 1}, {"reward": 0, "level": "easy"}], [{"reward": 0, "level": 2}], [{"reward": 1}]]
    metrics = compute_subset_metrics(tasks, "level")
    assert (metrics["easy/pass@1/accuracy"], metrics["2/pass@1/accuracy"]) == (50, 0)
    assert {name.split("/")[0] for name in metrics} == {"easy", "2"}


def test_every_metric_of_a_subset_is_a_number():
    metrics = compute_subset_metrics([[{"reward": 1, "level": "easy"}, {"reward": 0}]], "level")
    assert all(isinstance(value, int | float) for value in metrics.values())


AGENT_METRICS = {
    "pass@1/accuracy": 1,
    "pass@2/accuracy": 2,
    "pass@10/accuracy": 3,
    "pass@10/no_answer": 4,
    "pass@1[avg-of-10]/accuracy": 5,
    "pass@1[avg-of-10]/accuracy/std_dev_across_runs": 6,
    "easy/pass@32/accuracy": 7,
    "mean/reward": 8,
}


@pytest.mark.parametrize(
    ("pattern", "options", "chosen"),
    [
        ("pass@{k}", {}, {"pass@10/accuracy": 3, "pass@10/no_answer": 4}),
        ("pass@{k}", {"exclude_names": ["no_answer"]}, {"pass@10/accuracy": 3}),
        ("pass@{k}", {"score_names": ["no_answer"]}, {"pass@10/no_answer": 4}),
        ("pass@1[avg-of-{k}]", {}, {"pass@1[avg-of-10]/accuracy": 5}),
        ("easy/pass@{k}", {}, {"easy/pass@32/accuracy": 7}),
        ("majority@{k}", {}, {}),
    ],
)
def test_the_metrics_of_the_largest_k_are_chosen_by_number_and_without_companions(pattern, options, chosen):
    assert highest_k_metrics(AGENT_METRICS, pattern, **options) == chosen
