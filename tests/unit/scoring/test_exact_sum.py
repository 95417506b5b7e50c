"""Sums of numbers that come one after the other."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rollbook.scoring.exact_sum import ExactSum, Mean

FINITE = st.floats(-1e300, 1e300)
MANY = 1500
"""More than what waits at once."""


@settings(deadline=None)
@given(st.lists(st.lists(FINITE, max_size=4), max_size=4))
def test_a_sum_in_parts_has_every_digit_of_the_sum_at_once(parts):
    total = ExactSum()
    for part in parts:
        total.add(part * MANY)
    assert total.value() == math.fsum(value for part in parts for value in part * MANY)


def test_what_many_large_numbers_leave_of_a_small_one_is_not_lost():
    total = ExactSum()
    for value in (1e300, 1e-300, -1e300):
        total.add([value] * MANY)
    assert total.value() == math.fsum([1e-300] * MANY)


def test_a_sum_of_many_numbers_keeps_few():
    total = ExactSum()
    for number in range(100_000):
        total.add([number / 3])
        assert len(total._parts) < 1100


@pytest.mark.parametrize("times", [2, MANY])
def test_a_mean_whose_sum_is_too_large_is_undefined(times):
    mean = Mean()
    mean.add([1.7e308] * times)
    mean.add([1.0])
    assert mean.value() is None


def test_nothing_has_no_mean():
    assert Mean().value() is None
