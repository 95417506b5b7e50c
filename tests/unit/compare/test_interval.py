"""The interval of a difference agrees with independent references, and covers what it says."""

import math
from random import Random
from statistics import NormalDist

import pytest
from scipy import stats

from rollbook.compare.interval import Interval, difference_interval, standard_error
from rollbook.scoring.student_t import t_quantile


def _differences(count: int, seed: int) -> list[float]:
    chance = Random(seed)  # noqa: S311  answers, not secrets
    return [
        (sum(chance.random() < 0.6 for _ in range(4)) - sum(chance.random() < 0.5 for _ in range(4))) / 4
        for _ in range(count)
    ]


@pytest.mark.parametrize("count", [8, 60])
def test_the_bootstrap_is_the_percentile_interval_at_the_widened_level(count: int) -> None:
    differences = _differences(count, 3)
    share = NormalDist().cdf(-math.sqrt(count / (count - 1)) * t_quantile(0.975, count - 1))
    other = stats.bootstrap(
        (differences,), statistic=lambda values, axis: values.mean(axis=axis), n_resamples=20_000,
        confidence_level=1 - 2 * share, method="percentile", rng=7,
    ).confidence_interval  # fmt: skip
    mine = difference_interval(differences)
    assert mine.how == "bootstrap"
    assert (mine.low, mine.high) == pytest.approx((other.low, other.high), abs=0.012)


def test_what_is_drawn_for_an_interval_follows_from_the_seed() -> None:
    differences = _differences(60, 3)
    differences = [value + place / 1000 for place, value in enumerate(differences)]
    assert difference_interval(differences, seed=1) == difference_interval(differences, seed=1)
    assert difference_interval(differences, seed=1) != difference_interval(differences, seed=2)


def test_of_very_many_tasks_it_is_students_interval() -> None:
    differences = _differences(5_000, 4)
    other = stats.ttest_1samp(differences, 0).confidence_interval()
    mine = difference_interval(differences)
    assert (mine.how, mine.low, mine.high) == ("student", pytest.approx(other.low), pytest.approx(other.high))


@pytest.mark.parametrize("differences", [[], [0.5]])
def test_fewer_than_two_tasks_have_no_interval(differences: list[float]) -> None:
    assert difference_interval(differences).how == "none"
    assert standard_error(differences) is None


@pytest.mark.parametrize("count", [2, 6, 1_000])
def test_of_equal_tasks_a_share_is_left_open_that_so_many_would_not_show(count: int) -> None:
    mine = difference_interval([0.0] * count, within_unit=True)
    other = stats.binomtest(0, count).proportion_ci(0.95, method="exact").high
    assert (mine.how, mine.low, mine.high) == ("exact", pytest.approx(-other), pytest.approx(other))


def test_what_is_left_open_may_turn_as_far_as_rewards_can() -> None:
    mine = difference_interval([1.0] * 10, level=0.9, within_unit=True)
    assert mine.high == 1.0
    assert mine.low == pytest.approx(1 - 2 * (1 - 0.05 ** (1 / 10)))
    assert difference_interval([0.7 - 0.6, 0.1, 0.1], within_unit=True).how == "exact"


def test_equal_differences_of_rewards_without_a_limit_tell_no_interval() -> None:
    assert difference_interval([0.25] * 5) == Interval(None, None, "none")
