"""What rollouts cost."""

import pytest

from rollbook.scoring.performance import perf_summary


def test_rows_without_performance_have_no_summary():
    assert perf_summary([{"reward": 1.0}, {"ng_perf": None}]) is None


def test_tokens_turns_and_latencies_are_summed_up_over_the_rows_that_have_them():
    rows = [
        {
            "ng_perf": {
                "num_turns": 1,
                "completion_tokens": 10,
                "token_observability_coverage": 1.0,
                "total_latency_ms": 1,
            }
        },
        {
            "ng_perf": {
                "num_turns": 3,
                "completion_tokens": 60,
                "token_observability_coverage": 0.0,
                "total_latency_ms": 3,
            }
        },
        {"ng_perf": {"num_turns": 2}, "mask_sample": True},
        {"reward": 0.0},
    ]
    assert perf_summary(rows) == {
        "overall_observability_coverage": 0.75,
        "token_observability_coverage": 0.25,
        "mean_completion_tokens": 35.0,
        "median_completion_tokens": 35.0,
        "total_completion_tokens": 70,
        "mean_num_turns": 2.0,
        "median_num_turns": 2.0,
        "std_num_turns": pytest.approx((2 / 3) ** 0.5),
        "min_num_turns": 1,
        "p90_num_turns": pytest.approx(2.8),
        "max_num_turns": 3,
        "mean_tokens_per_turn": 15.0,
        "median_tokens_per_turn": 15.0,
        "total_latency_p50_ms": 2.0,
        "total_latency_p90_ms": pytest.approx(2.8),
        "total_latency_p99_ms": pytest.approx(2.98),
        "total_latency_mean_ms": 2.0,
    }


def test_a_rollout_without_turns_has_no_rate():
    assert "mean_tokens_per_turn" not in perf_summary([{"ng_perf": {"num_turns": 0, "completion_tokens": 5}}])
