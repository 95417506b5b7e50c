"""Aggregate metrics side by side, as the field's command compares them."""

import math

import pytest
from scipy import stats

from rollbook.compare.agents import AgentChoice, compared_agents
from rollbook.compare.metric_difference import metric_comparison
from rollbook.compare.metric_side import metric_side
from rollbook.compare.paired import beyond_rounding
from rollbook.compare.welch import welch
from rollbook.errors import ConfigError
from rollbook.scoring.aggregate import compute_aggregate_metrics


def rows(rewards):
    return [
        {"_ng_task_index": task, "_ng_rollout_index": repeat, "reward": reward, "tokens": 10}
        for task, repeats in enumerate(rewards)
        for repeat, reward in enumerate(repeats)
    ]


def entry(rewards, agent="a", **more):
    metrics = compute_aggregate_metrics(rows(rewards)).model_dump()
    return {"agent_ref": {"name": agent}} | metrics | more


def one(rewards, **more):
    return metric_side("file", [entry(rewards, **more)]).entries["a"]


BASELINE = [[1.0, 1.0, 0.0], [1.0, 0.0, 0.0], [1.0, 1.0, 1.0]]
CANDIDATE = [[0.0, 0.0, 0.0], [1.0, 1.0, 0.0], [1.0, 1.0, 1.0]]


def row(comparison, name="mean/reward"):
    (found,) = [metric for metric in comparison.metrics if metric.name == name]
    return found


def test_a_row_has_both_values_the_delta_and_its_welch_interval():
    found = row(metric_comparison(one(BASELINE), one(CANDIDATE)))
    assert (found.baseline, found.candidate) == pytest.approx((6 / 9, 5 / 9))
    assert found.delta == pytest.approx(-1 / 9)
    assert found.percent == pytest.approx(-100 / 6)
    ours, theirs = [1.0, 2 / 3, 1 / 3], [2 / 3, 2 / 3, 1 / 3]
    expected = stats.ttest_ind(theirs, ours, equal_var=False).confidence_interval(0.95)
    assert found.delta_interval == pytest.approx((expected.low, expected.high))


@pytest.mark.parametrize("alpha", [0.05, 0.001])
@pytest.mark.parametrize("sides", [([1.0, 2.0, 4.0], [0.0, 0.5]), ([0.5, 0.5, 0.6], [0.2, 0.4, 0.3, 0.8])])
def test_welchs_interval_and_test_are_those_of_scipy(sides, alpha):
    expected = stats.ttest_ind(sides[1], sides[0], equal_var=False)
    interval = expected.confidence_interval(1 - alpha)
    assert welch(*sides).interval(alpha) == pytest.approx((interval.low, interval.high))
    assert welch(*sides).p_value == pytest.approx(expected.pvalue)


def test_without_two_values_a_side_there_is_no_interval_and_without_spread_none_of_width():
    assert welch([1.0], [1.0, 2.0]) is None
    same = welch([1.0, 1.0], [3.0, 3.0])
    assert (same.interval(), same.p_value) == ((2.0, 2.0), None)


def test_repeats_that_rounding_alone_tells_apart_have_no_p_value_and_their_metric_no_difference():
    found = welch([0.1, 0.1, 0.1], [0.1, sum([0.1] * 3) / 3, sum([0.1] * 6) / 6])
    assert (found.delta, found.p_value) == (0, None)
    found = row(metric_comparison(one([[0.1, 0.1, 0.1]]), one([[0.1, 0.1]])))
    assert (found.baseline == found.candidate, found.delta, found.percent) == (False, 0, 0)


def test_metrics_that_are_infinite_or_undefined_are_no_rounding():
    assert beyond_rounding(float("inf"), float("inf")) == float("inf")
    assert math.isnan(beyond_rounding(float("nan"), 1.0))


def test_values_too_large_for_their_squares_have_no_interval():
    assert welch([1e308, -1e308], [1e308, 1e308]) is None
    assert welch([1e200, 2e200], [1e200, 3e200]) is None


def test_only_point_estimates_are_rows():
    names = [found.name for found in metric_comparison(one(BASELINE), one(CANDIDATE)).metrics]
    assert names == ["mean/reward", "mean/tokens"]


def test_a_side_that_lacks_a_metric_has_none_there():
    candidate = one(CANDIDATE, key_metrics={"mean/extra": 3.0})
    found = row(metric_comparison(one(BASELINE), candidate), "mean/extra")
    assert (found.baseline, found.candidate, found.delta) == (None, 3.0, None)


def test_files_without_metrics_by_repeat_are_completed_from_their_rollouts():
    old = entry(BASELINE, repeat_level_metrics=[])
    old["agent_metrics"] = {name: value for name, value in old["agent_metrics"].items() if "_across_" not in name}
    for group in old["group_level_metrics"]:
        for info in group["rollout_infos"]:
            del info["_ng_task_index"], info["_ng_rollout_index"]
    completed = metric_side("file", [old]).entries["a"]
    plain = row(metric_comparison(one(BASELINE), one(CANDIDATE)))
    assert row(metric_comparison(completed, one(CANDIDATE))) == plain


def test_flips_join_tasks_by_number_and_regressions_come_first():
    found = metric_comparison(one(BASELINE), one(CANDIDATE)).flips
    assert (found.kind, found.regressed, found.improved, found.tasks) == ("binary", 1, 1, 3)
    assert [change.baseline_task for change in found.listed] == [0, 1]
    assert found.listed[0].baseline_rewards == (1.0, 1.0, 0.0)


def test_rewards_by_repeat_are_kept_for_the_first_ten_of_a_direction():
    found = metric_comparison(one([[1.0]] * 14), one([[0.0]] * 14)).flips
    assert [bool(change.baseline_rewards) for change in found.listed] == [True] * 10 + [False] * 4


def test_unequal_repeats_are_warned_of():
    (warning,) = metric_comparison(one(BASELINE), one([[1.0, 0.0]] * 3)).warnings
    assert warning == "a: 3 repeats in the baseline, 2 in the candidate"


def test_metrics_that_have_nothing_in_common_are_refused():
    other = metric_side("file", [{"agent_ref": {"name": "a"}, "agent_metrics": {"mean/other": 1.0}}]).entries["a"]
    with pytest.raises(ConfigError, match="no metric in common"):
        metric_comparison(one(BASELINE), other)


def test_what_the_metrics_cover_is_read_from_them():
    assert one(BASELINE).coverage() == 1.0
    told = one(BASELINE, agent_metrics={"coverage/expected": 10, "coverage/scored": 9})
    assert told.coverage() == 0.9
    assert one([[1.0, 1.0], [1.0]]).coverage() == 0.75
    masked = rows(BASELINE)
    masked[0]["mask_sample"] = True
    metrics = compute_aggregate_metrics(masked).model_dump()
    assert metric_side("file", [{"agent_ref": {"name": "a"}} | metrics]).entries["a"].coverage() == pytest.approx(8 / 9)


def test_a_task_that_the_other_side_alone_has_is_not_covered():
    assert metric_comparison(one(BASELINE), one(BASELINE[:2])).coverage == (1.0, pytest.approx(2 / 3))


@pytest.mark.parametrize("document", [{}, [1], [{}], [entry(BASELINE), entry(CANDIDATE)]])
def test_a_file_that_is_no_list_of_entries_is_refused(document):
    with pytest.raises(ConfigError, match="file"):
        metric_side("file", document)


def test_an_aggregation_that_failed_is_told():
    failed = entry(BASELINE) | {"aggregation_error": {"type": "X"}}
    assert "its aggregation failed" in metric_side("file", [failed]).warnings[0]


def chosen(ours, *theirs, **choice):
    return compared_agents(AgentChoice(**choice), ours, theirs)


def test_agents_that_all_runs_have_are_compared_and_others_named():
    found = chosen(["a", "b", "c"], ["b", "a"], ["b", "d"])
    assert found.pairs == ((("b", "b"),), (("b", "b"),))
    assert found.skipped == ("a", "c", "d")


def test_a_name_for_each_side_wins_over_one_for_both():
    assert chosen(["a", "b"], ["b", "c"], both="b").pairs == ((("b", "b"),),)
    assert chosen(["a", "b"], ["c"], both="b", baseline="a", candidates=("c",)).pairs == ((("a", "c"),),)
    assert chosen(["a"], ["c", "d"], ["d"], candidates=("d",)).pairs == ((("a", "d"),), (("a", "d"),))


@pytest.mark.parametrize(
    ("choice", "said"),
    [
        ({}, "no agent is in every run"),
        ({"both": "a"}, "the candidate has no agent a"),
        ({"candidates": ("c", "d")}, "2 agents, of 1 candidates"),
        ({"baseline": "x"}, "the baseline has no agent x"),
    ],
)
def test_agents_that_cannot_be_compared_are_refused(choice, said):
    with pytest.raises(ConfigError, match=said):
        chosen(["a"], ["c"], **choice)
