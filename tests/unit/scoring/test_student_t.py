"""Quantiles of Student's t distribution."""

import math

import pytest

from rollbook.scoring.student_t import t_quantile, upper_tail


@pytest.mark.parametrize("probability", [0.6, 0.9, 0.975, 0.9995])
def test_one_degree_of_freedom_has_the_quantiles_of_the_cauchy_distribution(probability):
    assert t_quantile(probability, 1) == pytest.approx(math.tan(math.pi * (probability - 0.5)), rel=1e-11)


@pytest.mark.parametrize("probability", [0.6, 0.9, 0.975, 0.9995])
def test_two_degrees_of_freedom_have_their_closed_form(probability):
    share = 2 * probability - 1
    assert t_quantile(probability, 2) == pytest.approx(share * math.sqrt(2 / (1 - share * share)), rel=1e-11)


@pytest.mark.parametrize("df", [4, 6, 10, 50, 1000])
def test_even_degrees_of_freedom_agree_with_the_finite_series_of_their_tail(df):
    t = t_quantile(0.975, df)
    cosine_squared = df / (df + t * t)
    term, series = 1.0, 1.0
    for power in range(1, df // 2):
        term *= cosine_squared * (2 * power - 1) / (2 * power)
        series += term
    assert t / math.sqrt(df + t * t) * series == pytest.approx(0.95, abs=1e-12)


@pytest.mark.parametrize(
    ("df", "printed"),
    [(1, 12.7062047364), (3, 3.1824463053), (5, 2.5705818366), (30, 2.0422724563), (100, 1.9839715185)],
)
def test_the_quantiles_of_printed_tables_are_met(df, printed):
    assert t_quantile(0.975, df) == pytest.approx(printed, rel=1e-9)


def test_with_many_degrees_of_freedom_the_quantile_is_the_normal_one_with_its_first_correction():
    z, df = 1.959963984540054, 1_000_000
    assert t_quantile(0.975, df) == pytest.approx(z + (z**3 + z) / (4 * df), rel=1e-9)


@pytest.mark.parametrize("df", [1, 2, 7, 49_999])
def test_half_of_the_distribution_lies_above_zero_and_less_above_more(df):
    assert [upper_tail(0.0, df), t_quantile(0.5, df)] == [0.5, pytest.approx(0, abs=1e-12)]
    assert upper_tail(1e-6, df) > upper_tail(1, df) > upper_tail(5, df) > 0
