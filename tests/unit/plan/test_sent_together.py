"""What a run whose tasks' repeats are scored together needs."""

import pytest

from rollbook.errors import InputError
from rollbook.plan.together import refuse_interleaved, refuse_too_few_lanes


def test_fewer_lanes_than_the_largest_task_has_rollouts_are_refused_with_what_helps():
    with pytest.raises(InputError, match=r"task 7 has 4 rollouts.*group_scored.*--concurrency 4"):
        refuse_too_few_lanes((7, 4), 3)


@pytest.mark.parametrize(("largest", "lanes"), [((7, 4), 4), ((7, 4), 5), (None, 1)])
def test_a_largest_task_that_fits_is_fine_and_so_is_an_empty_plan(largest, lanes):
    refuse_too_few_lanes(largest, lanes)


def test_repeats_that_are_scored_together_are_not_interleaved():
    with pytest.raises(InputError, match="group_scored and interleave_repeats"):
        refuse_interleaved(interleave=True)
    refuse_interleaved(interleave=False)
