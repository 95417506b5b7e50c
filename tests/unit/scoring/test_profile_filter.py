"""The condition of `--keep`: what it means, what is undefined in it, and where it is wrong."""

import pytest

from rollbook.scoring.profile import Task
from rollbook.scoring.profile_filter import FilterError, names_in, parsed
from rollbook.scoring.profile_rates import TaskRates
from rollbook.scoring.profile_totals import Kept, LabelTotals

FOUR = TaskRates((0.0, 1.0, 0.0, 0.0), 5)


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("pass@1 == 0.25", True),
        ("pass@2 >= 0.5 and mean<0.9", True),
        ("pass@5 >= 0", None),
        ("not pass@5 >= 0", None),
        ("pass@5 >= 0 or mean < 1", True),
        ("pass@5 >= 0 and mean > 1", False),
        ("pass@5 >= 0 and mean < 1", None),
        ("0.2 < mean <= 0.25", True),
        ("0.2 < mean < 0.25", False),
        ("not not n == 4", True),
        ("not (n == 4 or missing == 1)", False),
        ("missing==1 and max==1 and min==0 and std==0.5", True),
        ("mean > -1e-3", True),
    ],
)
def test_a_condition_is_true_false_or_undefined_of_a_task(text, holds):
    assert parsed(text).holds(FOUR.value) is holds


@pytest.mark.parametrize(
    ("text", "column", "said"),
    [
        ("", 1, "the end stands where a number or a name"),
        ("mean >", 7, "the end stands where"),
        ("mean", 5, "a comparison such as"),
        ("mean > 0.5 and", 15, "the end"),
        ("reward > 1", 1, "reward is no name here; known are mean"),
        ("pass@0 > 1", 1, "k is a number from 1"),
        ("mean > 0.5 mean", 12, "'mean' stands where and, or, or the end"),
        ("mean = 1", 6, "cannot read '='"),
        ("mean > eval(1)", 8, "eval is no name here"),
        ("(mean > 1", 10, "the end stands where )"),
        ("mean > 1)", 9, "')' stands where"),
        ("1e999 < mean and mean.x > 1", 22, "cannot read"),
        ("(" * 60 + "n>1" + ")" * 60, 51, "more than 50 parentheses"),
        ("pass@" + "9" * 5000 + " > 1", 1, "k is a number from 1"),
    ],
)
def test_an_error_names_the_column(text, column, said):
    with pytest.raises(FilterError) as caught:
        parsed(text)
    assert f"column {column}: " in str(caught.value)
    assert said in str(caught.value)


def test_a_very_long_chain_is_no_deeper_than_a_short_one():
    assert parsed(" and ".join(["not not n > 1"] * 20_000)).holds(FOUR.value) is True


def test_the_names_of_a_condition_are_told_once_each():
    assert names_in(parsed("pass@4>1 or not (n > 2 and pass@4 < 3)")) == ("pass@4", "n")


def test_a_task_without_a_scored_rollout_has_no_mean_and_is_all_missing():
    nothing = TaskRates((), 3)

    assert [nothing.value(name) for name in ("n", "missing", "mean", "max", "min", "std", "pass@1")] == [
        *(0.0, 3.0),
        *(None,) * 5,
    ]


def test_pass_at_k_counts_only_tasks_with_k_samples_and_tells_of_the_others():
    totals = LabelTotals("a", other_ks=(5,))
    for index, rewards in enumerate(([0.0, 0.0], [1.0, 0.0, 0.0, 0.0], [1.0])):
        totals.add(Task(index, None, rewards, planned=5, measured=len(rewards)))

    assert totals.pass_rates() == {1: (pytest.approx((0 + 0.25 + 1) / 3), 3), 2: (pytest.approx(0.25), 2), 4: (1.0, 1)}
    assert totals.tasks == totals.partial == 3


def test_what_is_shown_of_a_task_is_what_is_asked_of_it():
    for rewards in ((0.0,) * 5, (1.0, 0.0, 1.0), (0.5, 0.2, 0.9), ()):
        rates = TaskRates(rewards, 5)
        assert rates.shown() == {k: rates.pass_at(k) for k in (1, 2, 4) if k <= len(rewards)}


def test_rewards_between_0_and_1_pass_with_the_best_of_the_first_k():
    assert TaskRates((0.2, 0.7, 0.9), 3).pass_at(2) == 0.7


@pytest.mark.parametrize(
    ("text", "rewards", "why"),
    [
        ("mean > 0", (1e308, 1e308), "mean is too large to be represented"),
        ("std > 0", (1.0,), "std of fewer than 2 rollouts"),
        ("pass@3 > 0", (1.0, 0.0), "pass@3 of fewer than 3 rollouts"),
    ],
)
def test_what_is_undefined_is_told_with_its_own_reason(text, rewards, why):
    kept = Kept(text, parsed(text))
    kept.verdict([TaskRates(rewards, len(rewards))])

    assert dict(kept.undefined) == {why: 1}
