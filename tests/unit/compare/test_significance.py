"""Tests of paired tasks agree with independent references."""

import math
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from rollbook.compare.paired import PairedTask
from rollbook.compare.significance import (
    DRAWS,
    ChosenTest,
    Signs,
    chosen_test,
    mcnemar_exact,
    permutation_test,
    sign_test,
)

COUNTS = st.integers(0, 400)
GRADES = st.floats(-1, 1).map(lambda value: round(value, 3))


@given(COUNTS, COUNTS)
def test_mcnemar_is_the_binomial_test_of_one_half(worse: int, better: int) -> None:
    expected = stats.binomtest(worse, worse + better, 0.5).pvalue if worse + better else 1.0
    assert mcnemar_exact(worse, better) == pytest.approx(expected, rel=1e-9)


def test_mcnemar_of_a_million_changes_is_the_binomial_test_of_one_half() -> None:
    expected = stats.binomtest(498_500, 1_000_000, 0.5).pvalue
    assert mcnemar_exact(498_500, 501_500) == pytest.approx(expected, rel=1e-6)


@given(st.lists(GRADES, max_size=60))
def test_the_sign_test_is_the_binomial_test_of_the_signs(differences: list[float]) -> None:
    positive, negative = sum(value > 0 for value in differences), sum(value < 0 for value in differences)
    expected = stats.binomtest(positive, positive + negative, 0.5).pvalue if positive + negative else 1.0
    assert sign_test(differences) == pytest.approx(expected, rel=1e-9)


@given(st.lists(GRADES, min_size=1, max_size=8))
def test_a_permutation_of_few_tasks_counts_every_choice_of_signs(differences: list[float]) -> None:
    observed = abs(math.fsum(differences))
    choices = list(product((1, -1), repeat=len(differences)))
    sums = [abs(math.fsum(sign * value for sign, value in zip(signs, differences, strict=True))) for signs in choices]
    expected = sum(value >= observed - 1e-9 for value in sums) / len(choices)
    assert permutation_test(differences) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("scale", [0.25, 0.1234567])
def test_a_permutation_of_many_tasks_agrees_with_an_independent_one(scale: float) -> None:
    differences = [scale * ((7 * number) % 9 - 3.5) + (number if scale < 0.2 else 0) / 997 for number in range(80)]

    def total(values: list[float], axis: int) -> float:
        return sum(values) if axis == 0 else values.sum(axis=axis)  # type: ignore[attr-defined]

    other = stats.permutation_test(
        (differences,), total, permutation_type="samples", n_resamples=20_000, vectorized=True, rng=5
    )
    assert permutation_test(differences) == pytest.approx(other.pvalue, abs=0.012)


def test_what_no_draw_reached_has_the_p_value_of_one_in_all_draws_and_not_0() -> None:
    assert permutation_test([1 + place / 100 for place in range(40)]) == 1 / (DRAWS + 1)


def test_draws_follow_from_the_seed() -> None:
    differences = [math.sin(number) + 0.15 for number in range(60)]
    assert permutation_test(differences, seed=1) == permutation_test(differences, seed=1)
    assert permutation_test(differences, seed=1) != permutation_test(differences, seed=2)


def test_very_many_different_tasks_are_held_against_the_normal_law() -> None:
    differences = [math.sin(number * number) + 0.01 for number in range(40_000)]
    expected = 2 * stats.norm.sf(sum(differences) / math.sqrt(sum(value * value for value in differences)))
    assert permutation_test(differences) == pytest.approx(expected, rel=1e-6)


def _task(baseline: tuple[float, ...], candidate: tuple[float, ...]) -> PairedTask:
    return PairedTask(baseline, candidate)


SINGLE = [_task((0.0,), (1.0,))] * 6 + [_task((1.0,), (0.0,))] * 2 + [_task((1.0,), (1.0,))] * 9
REPEATED = [_task((0.0, 1.0), (1.0, 1.0, 1.0))] * 6 + [_task((1.0, 0.0), (0.0, 0.0, 1.0))] * 4
GRADED = [_task((0.25,), (0.5,))] * 5 + [_task((0.75,), (0.625,))] * 4
ALIKE = [_task((0.25,), (0.5,))] * 5 + [_task((0.75,), (0.5,))] * 4
OUTWEIGHED = [*GRADED, _task((0.0,), (90.0,))]
AGAINST_THE_MEAN = [_task((0.5,), (0.4,))] * 9 + [_task((0.0,), (1.0,))]


@pytest.mark.parametrize(
    ("tasks", "name"),
    [
        ([], "none"),
        (SINGLE, "mcnemar"),
        (REPEATED, "permutation"),
        (GRADED, "permutation"),
        (ALIKE, "sign"),
        (OUTWEIGHED, "permutation"),
        (AGAINST_THE_MEAN, "permutation"),
    ],
)
def test_the_test_follows_from_the_shape_of_the_data(tasks: list[PairedTask], name: str) -> None:
    chosen = chosen_test(tasks)
    assert chosen.name == name
    assert (chosen.p_value is None) == (name == "none")


def test_what_is_chosen_is_what_is_computed() -> None:
    assert chosen_test(SINGLE) == ChosenTest("mcnemar", mcnemar_exact(2, 6), "one answer a side, right or wrong")
    assert chosen_test(REPEATED).p_value == permutation_test([task.difference for task in REPEATED])
    assert chosen_test(OUTWEIGHED).p_value == permutation_test([task.difference for task in OUTWEIGHED])


def test_of_differences_of_one_size_signs_and_means_are_one_test() -> None:
    differences = [task.difference for task in ALIKE]
    assert chosen_test(ALIKE).p_value == sign_test(differences) == pytest.approx(permutation_test(differences))


def test_what_most_tasks_did_is_told_beside_a_mean_that_one_of_them_makes() -> None:
    chosen = chosen_test(AGAINST_THE_MEAN)
    assert chosen.signs == Signs(9, 1, pytest.approx(stats.binomtest(1, 10).pvalue))
    assert chosen.p_value == pytest.approx(permutation_test([-0.1] * 9 + [1.0]))
    assert chosen.p_value > 0.9
    assert chosen_test(GRADED).signs is None


def test_repeats_of_a_task_are_no_more_tasks() -> None:
    once = [_task((0.0,), (1.0,))] * 3
    often = [_task((0.0,) * 50, (1.0,) * 50)] * 3
    assert chosen_test(often).p_value == pytest.approx(chosen_test(once).p_value)
