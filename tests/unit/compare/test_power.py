"""How much data a difference needs."""

import math
from random import Random

import pytest
from scipy import stats
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.power import TTestPower

from rollbook.compare.multiplicity import holm
from rollbook.compare.paired import PairedTask
from rollbook.compare.power import Needed, fewest_tasks, minimum_detectable_effect, needed
from rollbook.compare.significance import mcnemar_exact


def _tasks(count: int, repeats: int, gain: float, spread: float, seed: int) -> list[PairedTask]:
    """Return right and wrong answers: chances around one half, the candidate's larger by `gain` on average."""
    chance = Random(seed)  # noqa: S311  answers, not secrets

    def answers(right: float) -> tuple[float, ...]:
        return tuple(float(chance.random() < right) for _ in range(repeats))

    sides = [(0.5, 0.5 + gain + spread * (1 if number % 2 else -1)) for number in range(count)]
    return [PairedTask(answers(low), answers(high)) for low, high in sides]


@pytest.mark.parametrize(("tasks", "near"), [(4_000, 1e-3), (30, 0.01), (8, 0.05)])
def test_the_least_effect_that_is_found_is_the_one_of_the_reference(tasks: int, near: float) -> None:
    effect = TTestPower().solve_power(nobs=tasks, alpha=0.05, power=0.8)
    assert minimum_detectable_effect(1 / math.sqrt(tasks), tasks) == pytest.approx(effect, rel=near)


@pytest.mark.parametrize("alpha", [0.05, 0.01, 0.0625, 0.9])
def test_fewer_tasks_than_bring_the_least_p_value_below_the_level_find_nothing(alpha: float) -> None:
    least = fewest_tasks(alpha)
    assert mcnemar_exact(0, least) < alpha
    assert least == 2 or mcnemar_exact(0, least - 1) >= alpha
    assert minimum_detectable_effect(0.1, least - 1, alpha=alpha) is None
    assert minimum_detectable_effect(0.1, least, alpha=alpha) is not None


@pytest.mark.parametrize("repeats", [1, 2])
def test_few_tasks_ask_for_more_tasks_however_clear_they_are(repeats: int) -> None:
    found = needed([PairedTask((0.0,) * repeats, (1.0,) * repeats)] * 4)
    assert found == Needed(None, 6, "4 tasks can show nothing at 0.05, whatever their repeats; 6 tasks can")


def test_tasks_that_differ_all_alike_tell_nothing_of_what_could_be_found() -> None:
    assert minimum_detectable_effect(0.0, 1_000) is None
    found = needed([PairedTask((1.0,), (1.0,))] * 1_000)
    assert (found.repeats, found.tasks, "all alike" in found.why) == (None, None, True)


def test_tasks_needed_are_those_of_the_reference() -> None:
    tasks = _tasks(400, 2, 0.06, 0.0, 1)
    differences = [task.difference for task in tasks]
    spread = stats.tstd(differences)
    expected = TTestPower().solve_power(effect_size=abs(sum(differences) / 400) / spread, alpha=0.05, power=0.8)
    assert needed(tasks).tasks == pytest.approx(expected, rel=0.02)


def test_as_many_repeats_as_are_needed_bring_the_error_down_to_where_the_difference_shows() -> None:
    tasks = _tasks(100, 6, 0.05, 0.0, 2)
    found = needed(tasks)
    assert found.repeats is not None
    gain = math.fsum(task.difference for task in tasks) / 100
    errors = []
    for seed in range(40):
        more = [task.difference for task in _tasks(100, found.repeats, gain, 0.0, 100 + seed)]
        errors.append(stats.sem(more))
    assert minimum_detectable_effect(math.fsum(errors) / 40, 100) == pytest.approx(gain, rel=0.1)


def test_where_tasks_themselves_differ_more_repeats_do_not_help() -> None:
    found = needed(_tasks(60, 8, 0.02, 0.4, 3))
    assert (found.repeats, "more tasks" in found.why) == (None, True)
    assert found.tasks is not None
    assert found.tasks > 60


@pytest.mark.parametrize(
    ("tasks", "why"),
    [
        ([PairedTask((0.0,), (1.0,))], "fewer than two"),
        ([PairedTask((0.0,), (1.0,)), PairedTask((1.0,), (0.0,))] * 3, "no difference"),
        ([PairedTask((0.0,), (1.0,)), PairedTask((1.0,), (1.0,))] * 3, "one repeat"),
    ],
)
def test_what_the_data_does_not_tell_is_said(tasks: list[PairedTask], why: str) -> None:
    found = needed(tasks)
    assert found.repeats is None
    assert why in found.why


@pytest.mark.parametrize("p_values", [[], [0.04], [0.01, 0.04, 0.03], [0.5, 0.5, 0.9, 0.001]])
def test_adjusted_p_values_are_holms(p_values: list[float]) -> None:
    expected = list(multipletests(p_values, method="holm")[1]) if p_values else []
    assert holm(p_values) == pytest.approx(expected)
