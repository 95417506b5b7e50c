"""What share of a plan a file of metrics speaks for."""

import pytest

from rollbook.compare.metric_side import metric_side
from rollbook.scoring.aggregate import compute_aggregate_metrics


def coverage(rewards, **told):
    rows = [{"_ng_task_index": task, "_ng_rollout_index": 0, "n": 1} for task in range(len(rewards))]
    rows = [row if reward is None else row | {"reward": reward} for row, reward in zip(rows, rewards, strict=True)]
    entry = {"agent_ref": {"name": "a"}} | compute_aggregate_metrics(rows).model_dump()
    entry["agent_metrics"] = entry["agent_metrics"] | {f"coverage/{name}": count for name, count in told.items()}
    return metric_side("file", [entry]).entries["a"].coverage()


def test_results_without_a_reward_are_not_covered_whatever_the_file_says():
    assert coverage([1.0, 1.0, None, None]) == pytest.approx(0.5)
    assert coverage([1.0, 1.0, None, None], expected=4, scored=4) == pytest.approx(0.5)


def test_what_counts_as_zero_by_choice_is_covered_beside_what_is_scored():
    assert coverage([1.0, 0.0, 0.0], expected=4, scored=1, imputed=2) == pytest.approx(0.75)
    assert coverage([1.0, 0.0, 0.0], expected=4, scored=1) == pytest.approx(0.25)


def test_without_any_reward_the_counts_of_the_file_decide():
    assert coverage([None, None], expected=4, scored=2) == pytest.approx(0.5)
