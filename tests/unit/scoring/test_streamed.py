import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollbook.errors import InputError
from rollbook.scoring.distribution import Distribution, together
from rollbook.scoring.number_column import NumberColumn
from rollbook.scoring.spread import mean, median, population_std, quantile, sample_std
from rollbook.scoring.streamed import StreamedMetrics


def row(task, rollout, **fields):
    return msgspec.json.encode({"_ng_task_index": task, "_ng_rollout_index": rollout} | fields)


def streamed(*rows, expected=lambda _task: None):
    entries = []
    metrics = StreamedMetrics(entries.append, expected)
    for one in rows:
        metrics.add(one)
    end = metrics.end()
    return [msgspec.json.decode(entry) for entry in entries], end


def test_the_entries_of_tasks_go_out_in_order_while_rows_come():
    entries = []
    metrics = StreamedMetrics(entries.append)
    metrics.add_all([row(0, 0, reward=1.0), row(0, 1, reward=0.0)])
    assert entries == []
    metrics.add_all([row(task, 0, reward=1.0) for task in range(1, 1000)])
    early = [msgspec.json.decode(entry)["_ng_task_index"] for entry in entries]
    assert early == list(range(999))
    metrics.end()
    assert msgspec.json.decode(entries[-1])["_ng_task_index"] == 999


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([(0, 0), (0, 0)], "rollout 0-0 is there twice"),
        ([(0, 1), (0, 0)], "rollout 0-0 comes after 0-1"),
        ([(1, 0), (0, 0)], "rollout 0-0 comes after task 1"),
    ],
)
def test_a_rollout_that_does_not_come_after_the_one_before_is_refused(rows, said):
    metrics = StreamedMetrics(lambda _: None)
    with pytest.raises(InputError, match=said):
        [metrics.add(row(*key)) for key in rows] and metrics.end()


@pytest.mark.parametrize("index", [-1, 0.5, None, True, "0"])
def test_a_row_that_names_no_rollout_is_refused(index):
    metrics = StreamedMetrics(lambda _: None)
    metrics.add(row(0, 0))
    with pytest.raises(InputError, match="names no rollout"):
        metrics.add(row(1, index))


def test_the_planned_repeats_of_a_task_are_told_beside_those_at_hand():
    first, second = streamed(
        row(0, 0, reward=1),
        row(1, 0, reward=1),
        expected={1: 4}.get,
    )[0]
    assert (first["expected_num_rollouts"], first["missing_num_rollouts"]) == (1, 0)
    assert (second["expected_num_rollouts"], second["missing_num_rollouts"]) == (4, 3)
    assert second["reward_profile_completion_pct"] == 25.0


def test_rows_that_look_unlike_each_other_are_read_alike():
    rows = [{"reward": 1.0}, {"reward": "1"}, {"reward": True, "x": 2}, {"x": None, "y": [1]}, {"new": 3, "x": 2}] * 2
    found = streamed(*(row(0, number, **fields) for number, fields in enumerate(rows)))[1].agent_metrics
    assert {name: found[f"mean/{name}"] for name in ("reward", "x", "new")} == {"reward": 1.0, "x": 2.0, "new": 3.0}


def test_rows_with_ever_new_fields_are_read_after_nothing_is_learned_any_more():
    rows = [row(0, number, **{f"field{number}": number}) for number in range(200)]
    found = streamed(*rows)[1].agent_metrics
    assert [found[f"mean/field{number}"] for number in range(200)] == [float(number) for number in range(200)]


@pytest.mark.parametrize(
    "values", [[1, 2, 2**60], [1, 0.5], [0.5, 2**64 - 1], [0.5, 1e300, 2**60 + 1], [2**70, 1], [True]]
)
def test_a_column_gives_back_the_numbers_that_it_was_given(values):
    column = NumberColumn()
    for value in values:
        column.extend([value])
    assert list(column) == list(NumberColumn(values)) == values


ODD = [0.1, -0.3, 5e-324, 1e-310, 2**60, 2**53 + 1, 1 / 3, -1e200, 1e289, 7, -0.0, 1e-200]
COLUMNS = [
    [0.1 * (n % 7) for n in range(5000)],
    [n * 0.37 % 1 for n in range(5000)],
    [3, 1],
    *([[ODD[n * n % end] for n in range(9000)] for end in (4, 7, 8, 12)]),
    [1e307 * (n % 3) for n in range(5000)],
]


@pytest.mark.parametrize("cut", [3, 30])
@pytest.mark.parametrize("values", COLUMNS)
def test_a_distribution_over_parts_is_described_as_the_numbers_together(values, cut):
    end, ordered = len(values) // cut, sorted(values)
    whole = Distribution(values[:end], values[end:])
    parts = [Distribution(part) for part in (values[:end], values[end:]) if part]
    for one in (whole, together(parts)):
        assert (one.mean(), one.median()) == (mean(values), median(ordered))
        assert (one.sample_std(), one.population_std()) == (sample_std(values), population_std(values))
        assert [one.quantile(share) for share in (0, 0.25, 0.9, 1)] == [
            quantile(ordered, share) for share in (0, 0.25, 0.9, 1)
        ]


@given(st.lists(st.one_of(st.floats(-1e300, 1e300), st.integers(-(2**70), 2**70)), min_size=1, max_size=20))
def test_many_times_the_same_numbers_add_up_exactly(some):
    values = [some[n * n % len(some)] for n in range(5000)]
    assert (Distribution(values).mean(), Distribution(values).sample_std()) == (mean(values), sample_std(values))


def test_rewards_of_two_tasks_and_two_repeats_have_the_published_metrics():
    """V7."""
    rewards = {(0, 0): 1, (0, 1): 0, (1, 0): 1, (1, 1): 1}
    entries, found = streamed(*(row(*key, reward=reward) for key, reward in rewards.items()))
    overall = found.agent_metrics
    names = ("mean/reward", "median/reward", "std/reward", "num_repeats", "mean_across_repeats/mean/reward")
    assert [overall[name] for name in names] == [0.75, 1.0, 0.5, 2, 0.75]
    spreads = ("std", "se", "ci_low_95", "ci_high_95")
    assert [overall[f"{name}_across_repeats/mean/reward"] for name in spreads] == pytest.approx(
        [0.35355339, 0.25, -2.42655118, 3.92655118], abs=1e-8
    )
    assert [entry["mean/reward"] for entry in found.repeat_level_metrics] == [1.0, 0.5]
    assert [entry["std/reward"] for entry in entries] == pytest.approx([0.70710678, 0.0], abs=1e-8)


def test_a_masked_rollout_is_coverage_and_no_measurement():
    """V8."""
    rows = [row(0, 0, reward=1), row(0, 1, reward=0), row(1, 0, reward=1), row(1, 1, reward=1, mask_sample=True)]
    entries, found = streamed(*rows)
    overall = found.agent_metrics
    assert overall["mean/reward"] == pytest.approx(2 / 3)
    coverage = ("measured_rollouts", "masked_rollouts", "measured_tasks", "fully_masked_tasks")
    assert [overall[f"coverage/{name}"] for name in coverage] == [3, 1, 2, 0]
    assert (overall["num_repeats"], entries[1]["num_rollouts"], entries[1]["std/reward"]) == (2, 1, 0.0)
    assert [found.repeat_level_metrics[1][name] for name in ("sample_count", "missing_count")] == [1, 1]
