"""The metrics of one server's results."""

import logging
import math

import pytest

from rollbook.errors import InputError
from rollbook.scoring.aggregate import (
    AggregateMetrics,
    AggregateMetricsMixin,
    AggregateMetricsRequest,
    compute_aggregate_metrics,
)

REWARDS = {(0, 0): 1.0, (0, 1): 0.0, (1, 0): 1.0, (1, 1): 1.0}


def row(task, rollout, **fields):
    return {"_ng_task_index": task, "_ng_rollout_index": rollout, **fields}


def rows_of(rewards, masked=()):
    return [
        row(*key, reward=reward, **({"mask_sample": True} if key in masked else {})) for key, reward in rewards.items()
    ]


def chosen(metrics, *names):
    return {name: metrics[name] for name in names}


def test_four_rewards_have_the_overall_metrics_of_the_field():
    metrics = compute_aggregate_metrics(rows_of(REWARDS)).agent_metrics
    assert metrics == {
        "mean/reward": 0.75,
        "max/reward": 1.0,
        "min/reward": 0.0,
        "median/reward": 1.0,
        "std/reward": 0.5,
        "mean_across_repeats/mean/reward": 0.75,
        "median_across_repeats/mean/reward": 0.75,
        "std_across_repeats/mean/reward": pytest.approx(0.35355339, abs=5e-9),
        "min_across_repeats/mean/reward": 0.5,
        "max_across_repeats/mean/reward": 1.0,
        "se_across_repeats/mean/reward": pytest.approx(0.25),
        "ci_low_95_across_repeats/mean/reward": pytest.approx(-2.42655118, abs=5e-9),
        "ci_high_95_across_repeats/mean/reward": pytest.approx(3.92655118, abs=5e-9),
        "num_repeats": 2,
    }


def test_four_rewards_have_the_metrics_of_each_repeat():
    first, second = compute_aggregate_metrics(rows_of(REWARDS)).repeat_level_metrics
    assert chosen(first, "_ng_rollout_index", "sample_count", "missing_count", "mean/reward") == {
        "_ng_rollout_index": 0,
        "sample_count": 2,
        "missing_count": 0,
        "mean/reward": 1.0,
    }
    assert second == {
        "_ng_rollout_index": 1,
        "sample_count": 2,
        "missing_count": 0,
        "mean/reward": 0.5,
        "median/reward": 0.5,
        "std/reward": pytest.approx(math.sqrt(0.5)),
        "sem/reward": pytest.approx(0.5),
        "min/reward": 0.0,
        "max/reward": 1.0,
        "p25/reward": 0.25,
        "p75/reward": 0.75,
        "ci_low_95/reward": pytest.approx(0.5 - 12.7062047364 / 2),
        "ci_high_95/reward": pytest.approx(0.5 + 12.7062047364 / 2),
    }


def test_a_task_has_an_entry_with_its_statistics_its_sample_and_its_rollouts():
    rows = [row(3, 1, reward=0.0, level="b"), row(3, 0, reward=1.0, level="a", _private=7)]
    [entry] = compute_aggregate_metrics(rows).group_level_metrics
    assert entry == {
        "mean/reward": 0.5,
        "max/reward": 1.0,
        "min/reward": 0.0,
        "median/reward": 0.5,
        "std/reward": pytest.approx(0.70710678, abs=5e-9),
        "sample": {"reward": 1.0, "level": "a", "_private": 7},
        "num_rollouts": 2,
        "expected_num_rollouts": 2,
        "missing_num_rollouts": 0,
        "reward_profile_completion_pct": 100.0,
        "rollout_infos": [
            {"rollout_id": "3:0", "_ng_task_index": 3, "_ng_rollout_index": 0, "reward": 1.0},
            {"rollout_id": "3:1", "_ng_task_index": 3, "_ng_rollout_index": 1, "reward": 0.0},
        ],
        "_ng_task_index": 3,
    }


def test_a_masked_result_is_coverage_and_no_measurement():
    metrics = compute_aggregate_metrics(rows_of(REWARDS, masked=[(1, 1)]))
    coverage = {
        "coverage/measured_rollouts": 3,
        "coverage/masked_rollouts": 1,
        "coverage/measured_tasks": 2,
        "coverage/fully_masked_tasks": 0,
    }
    assert metrics.agent_metrics.items() >= {"num_repeats": 2, **coverage}.items()
    assert metrics.agent_metrics["mean/reward"] == pytest.approx(0.66666667, abs=5e-9)
    assert metrics.key_metrics == {"mean/reward": metrics.agent_metrics["mean/reward"], **coverage}
    assert chosen(metrics.group_level_metrics[1], "num_rollouts", "std/reward") == {
        "num_rollouts": 1,
        "std/reward": 0.0,
    }
    assert chosen(metrics.repeat_level_metrics[1], "sample_count", "missing_count") == {
        "sample_count": 1,
        "missing_count": 1,
    }
    assert "mask_sample" not in metrics.group_level_metrics[1]["sample"]


def test_results_that_are_all_masked_leave_coverage_and_cost_alone():
    rows = [{**each, "ng_perf": {"num_turns": 2}} for each in rows_of(REWARDS, masked=REWARDS)]
    metrics = compute_aggregate_metrics(rows)
    assert metrics.agent_metrics == metrics.key_metrics
    assert metrics.agent_metrics == {
        "coverage/measured_rollouts": 0,
        "coverage/masked_rollouts": 4,
        "coverage/measured_tasks": 0,
        "coverage/fully_masked_tasks": 2,
    }
    assert metrics.group_level_metrics == metrics.repeat_level_metrics == []
    assert metrics.perf_summary["mean_num_turns"] == 2.0


def test_no_results_have_no_metrics():
    assert compute_aggregate_metrics([]) == AggregateMetrics()


def test_numbers_and_flags_at_the_top_and_in_usage_are_averaged_and_nothing_else():
    response = {"usage": {"input_tokens": 10, "details": {"cached": 4}}, "created_at": 5.0}
    metrics = compute_aggregate_metrics(
        [
            row(0, 0, reward=1.0, solved=True, _ng_attempt_index=3, text="7", nested={"x": 1}, response=response),
            row(1, 0, reward=0.0, solved=False, none=None, broken=math.nan),
        ]
    )
    assert metrics.key_metrics == {"mean/input_tokens": 10.0, "mean/reward": 0.5, "mean/solved": 0.5}


def test_a_missing_value_is_skipped_and_never_zero():
    metrics = compute_aggregate_metrics([row(0, 0, reward=1.0, turns=4), row(1, 0, reward=0.0)]).agent_metrics
    assert chosen(metrics, "mean/turns", "mean/reward") == {"mean/turns": 4.0, "mean/reward": 0.5}
    assert "std/turns" not in metrics


def test_a_field_of_the_row_wins_over_a_usage_number_of_the_same_name():
    metrics = compute_aggregate_metrics([row(0, 0, total_tokens=3, response={"usage": {"total_tokens": 9}})])
    assert metrics.key_metrics == {"mean/total_tokens": 3.0}


def test_numbers_too_large_to_average_leave_their_mean_out():
    metrics = compute_aggregate_metrics([row(0, 0, a=1.6e308, b=10**400), row(1, 0, a=1.6e308, b=1)]).agent_metrics
    assert "mean/a" not in metrics
    assert metrics["mean/b"] == 1.0


def test_two_rows_of_one_rollout_are_refused_by_their_places():
    with pytest.raises(InputError, match=r"rollout 0-1 is in the request twice \(verify_responses\[0\] and \[2\]\)"):
        compute_aggregate_metrics([row(0, 1), row(0, 0), row(0, 1)])


@pytest.mark.parametrize("indices", [{}, {"_ng_task_index": 0}, {"_ng_task_index": True, "_ng_rollout_index": 0}])
def test_a_row_that_names_no_rollout_is_refused(indices):
    with pytest.raises(InputError, match=r"verify_responses\[0\] names no rollout"):
        compute_aggregate_metrics([{**indices, "reward": 1.0}])


def test_hooks_see_unmasked_rows_by_task_and_their_metrics_join():
    seen = []

    def metrics_of(tasks):
        seen.append([[each["reward"] for each in task] for task in tasks])
        return {"own": 5, "per_task_metrics": [{"_ng_task_index": 1, "hard": 2}, {"_ng_task_index": 9, "hard": 3}]}

    metrics = compute_aggregate_metrics(
        rows_of(REWARDS, masked=[(0, 1)]), metrics_of, lambda agent_metrics: {"picked": agent_metrics["own"]}
    )
    assert seen == [[[1.0], [1.0, 1.0]]]
    assert metrics.agent_metrics["own"] == 5
    assert "per_task_metrics" not in metrics.agent_metrics
    assert [entry.get("hard") for entry in metrics.group_level_metrics] == [None, 2]
    assert metrics.key_metrics["picked"] == 5


def test_a_repeat_metric_of_the_server_replaces_the_generic_one_where_every_repeat_has_it():
    answers = iter([{"mean/reward": 10.0, "half": 1.0, "odd": math.nan}, {"mean/reward": 20.0, "odd": 1.0}])
    metrics = compute_aggregate_metrics(rows_of(REWARDS), compute_repeat_metrics_fn=lambda _tasks: next(answers))
    assert [entry["mean/reward"] for entry in metrics.repeat_level_metrics] == [10.0, 20.0]
    assert metrics.agent_metrics["mean_across_repeats/mean/reward"] == 15.0
    assert not any("half" in entry or "odd" in entry for entry in metrics.repeat_level_metrics)


def test_a_repeat_hook_is_given_one_row_a_task():
    seen = []
    compute_aggregate_metrics(rows_of(REWARDS), compute_repeat_metrics_fn=seen.append)
    assert [[[each["_ng_rollout_index"] for each in task] for task in tasks] for tasks in seen] == [
        [[0], [0]],
        [[1], [1]],
    ]


def test_what_a_hook_answers_is_made_strict_json():
    answer = {"bad": math.inf, "runs": [1.0, math.nan], "deep": {"bad": -math.inf, "good": 1}}
    metrics = compute_aggregate_metrics(rows_of(REWARDS), lambda _tasks: answer).agent_metrics
    assert "bad" not in metrics
    assert chosen(metrics, "runs", "deep") == {"runs": [1.0, None], "deep": {"good": 1}}


def test_the_sample_of_a_task_is_strict_json():
    [entry] = compute_aggregate_metrics([row(0, 0, reward=1.0, bad=math.nan, seen=[math.inf])]).group_level_metrics
    assert entry["sample"] == {"reward": 1.0, "seen": [None]}


@pytest.mark.parametrize(
    ("name", "compared"),
    [
        ("mean/reward", True),
        ("pass@1/accuracy", True),
        ("own", True),
        ("sem/reward", False),
        ("p25/reward", False),
        ("latency/p95", False),
        ("score/ci_low", False),
        ("score_ci95_upper", False),
        ("pass@1[avg-of-2]/accuracy/std_dev_across_runs", False),
        ("token_usage_version", False),
    ],
)
def test_only_point_estimates_are_compared_across_repeats(name, compared):
    metrics = compute_aggregate_metrics(rows_of(REWARDS), compute_repeat_metrics_fn=lambda _tasks: {name: 1.0})
    assert (f"mean_across_repeats/{name}" in metrics.agent_metrics) is compared


def test_one_repeat_has_no_repeat_level():
    metrics = compute_aggregate_metrics([row(0, 0, reward=1.0), row(1, 0, reward=0.0)])
    assert metrics.repeat_level_metrics == []
    assert not any("across_repeats" in name for name in metrics.agent_metrics)


def test_unequal_repeats_and_intervals_without_width_are_logged_once(caplog):
    with caplog.at_level(logging.INFO):
        compute_aggregate_metrics(rows_of({(0, 0): 1.0, (1, 0): 1.0, (2, 0): 1.0, (0, 1): 0.0}))
    assert [record.message for record in caplog.records] == [
        "the same in all tasks of some repeat, so their intervals have no width: ['reward']",
        "repeats cover different tasks (of 3 tasks: repeat 0 3, repeat 1 1)",
    ]


def test_the_plain_function_refuses_a_coroutine_hook_by_name_of_who_awaits_it():
    async def metrics_of(tasks):
        return {}

    with pytest.raises(TypeError, match="AggregateMetricsMixin"):
        compute_aggregate_metrics(rows_of(REWARDS), metrics_of)


class Plain(AggregateMetricsMixin):
    def compute_metrics(self, tasks):
        return {"tasks": len(tasks)}

    def compute_repeat_metrics(self, tasks):
        return {"one": len(tasks)}

    def get_key_metrics(self, agent_metrics):
        return {"tasks": agent_metrics["tasks"]}


class Awaited(AggregateMetricsMixin):
    async def compute_metrics(self, tasks):
        return {"tasks": len(tasks)}

    async def compute_repeat_metrics(self, tasks):
        return {"one": len(tasks)}

    async def get_key_metrics(self, agent_metrics):
        return {"tasks": agent_metrics["tasks"]}


@pytest.mark.parametrize("server", [Plain(), Awaited()])
async def test_a_server_answers_with_its_hooks_whether_they_are_awaited_or_not(server):
    metrics = await server.aggregate_metrics(AggregateMetricsRequest(verify_responses=rows_of(REWARDS)))
    assert metrics.key_metrics == {"tasks": 2}
    assert [entry["one"] for entry in metrics.repeat_level_metrics] == [2, 2]


async def test_a_server_without_hooks_answers_with_every_mean():
    request = AggregateMetricsRequest(verify_responses=rows_of(REWARDS))
    answer = await AggregateMetricsMixin().aggregate_metrics(request)
    assert answer == compute_aggregate_metrics(rows_of(REWARDS))


def test_a_stop_iteration_out_of_a_hook_is_no_answer():
    with pytest.raises(StopIteration):
        compute_aggregate_metrics(rows_of(REWARDS), lambda _tasks: next(iter(())))
