import pytest

from rollbook import compute_pass_majority_metrics


def test_a_score_that_some_rollouts_lack_is_averaged_over_those_that_have_it():
    tasks = [[{"precision": 0.5}, {}], [{}, {}], [{}, {"precision": 0.1}]]
    metrics, _, names, max_k = compute_pass_majority_metrics(tasks, score_fn=dict)
    assert (names, max_k) == (["precision"], 2)
    assert metrics["pass@1[avg-of-1]/precision"] == pytest.approx(50.0)
    assert metrics["pass@1[avg-of-2]/precision"] == pytest.approx(30.0)
