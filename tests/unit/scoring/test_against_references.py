"""Statistics against independent references: statsmodels, scipy, and counting every case."""

import itertools
import warnings

import numpy as np
import pytest
import statsmodels.api as sm
from scipy import stats

from rollbook.scoring.headline import headline_of, measured
from rollbook.scoring.pass_at_k import compute_pass_majority_metrics, pass_at_k
from rollbook.scoring.retry_bias import OfTask, compared
from rollbook.scoring.student_t import t_quantile

UNEQUAL = (1, 4, 2, 7, 3, 3, 1, 5)


def random_tasks(seed, sizes=UNEQUAL):
    rng = np.random.default_rng(seed)
    return [rng.normal(rng.random(), 0.3, size).tolist() for size in sizes]


def clustered(values, regressors, tasks):
    """Return a regression of the rewards whose covariance is clustered by task, corrected by G / (G - 1) alone."""
    values, tasks = np.array(values), np.array(tasks)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = sm.OLS(values, np.array(regressors, dtype=float)).fit(
            cov_type="cluster", cov_kwds={"groups": tasks, "use_correction": False, "df_correction": True}
        )
    clusters = len(set(tasks.tolist()))
    return fit, np.sqrt(clusters / (clusters - 1)) * fit.bse


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("sizes", [UNEQUAL, (4,) * 30, (1,) * 12])
def test_the_standard_error_is_that_of_a_regression_on_a_constant_clustered_by_task(seed, sizes):
    tasks = random_tasks(seed, sizes)
    found = measured(lambda: tasks, sum(sizes))
    named = [task for task, rewards in enumerate(tasks) for _ in rewards]
    fit, (error,) = clustered(list(itertools.chain(*tasks)), [[1.0]] * len(named), named)
    assert found.mean == pytest.approx(fit.params[0], rel=1e-12)
    assert found.standard_error == pytest.approx(error, rel=1e-10)


@pytest.mark.parametrize("seed", range(5))
def test_the_interval_is_that_of_a_t_distribution_with_one_degree_of_freedom_fewer_than_tasks(seed):
    tasks = random_tasks(seed)
    found = headline_of(measured(lambda: tasks, sum(UNEQUAL)))
    reach = stats.t.ppf(0.975, len(tasks) - 1) * found.observed.standard_error
    assert found.interval.high == pytest.approx(found.value + reach, rel=1e-10)
    assert found.interval.low == pytest.approx(found.value - reach, rel=1e-10)


@pytest.mark.parametrize("seed", range(5))
def test_the_difference_of_retried_rollouts_is_that_of_a_regression_on_whether_they_were_retried(seed):
    rng = np.random.default_rng(seed)
    tasks = [[(reward, rng.random() < 0.3) for reward in rewards] for rewards in random_tasks(seed)]
    (found,) = compared(
        lambda: [OfTask("a", [r for r, late in task if not late], [r for r, late in task if late]) for task in tasks]
    )
    rollouts = [(reward, late, number) for number, task in enumerate(tasks) for reward, late in task]
    fit, errors = clustered(
        [reward for reward, _, _ in rollouts], [[1.0, late] for _, late, _ in rollouts], [task for *_, task in rollouts]
    )
    reach = stats.t.ppf(0.975, len(UNEQUAL) - 1) * errors[1]
    assert found.difference == pytest.approx(fit.params[1], rel=1e-10)
    assert found.interval.high - found.difference == pytest.approx(reach, rel=1e-9)


@pytest.mark.parametrize("df", [1, 2, 3, 5, 10, 29, 99, 499, 10_000, 1_000_000])
@pytest.mark.parametrize("probability", [0.5, 0.6, 0.9, 0.975, 0.9995])
def test_quantiles_of_t_are_those_of_scipy(probability, df):
    assert t_quantile(probability, df) == pytest.approx(stats.t.ppf(probability, df), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("n", range(1, 8))
def test_pass_at_k_is_the_share_of_all_choices_of_k_rollouts_that_hold_a_right_one(n):
    for right in range(n + 1):
        rollouts = [index < right for index in range(n)]
        for k in range(1, n + 1):
            choices = list(itertools.combinations(rollouts, k))
            share = sum(map(any, choices)) / len(choices)
            assert pass_at_k(n, right, k) == pytest.approx(share, abs=1e-12)
            rows = [[{"reward": float(one)} for one in rollouts]]
            metrics = compute_pass_majority_metrics(rows)[0]
            assert metrics[f"pass@{k}/accuracy"] == pytest.approx(100 * share, abs=1e-9)


def test_the_interval_holds_the_true_mean_in_95_of_100_runs_of_100_tasks_with_4_repeats():
    rng = np.random.default_rng(20)
    chances = rng.uniform(0.05, 0.95, size=(2000, 100, 1))
    rewards = (rng.random((2000, 100, 4)) < chances).astype(float).tolist()
    found = [headline_of(measured(lambda tasks=tasks: tasks, 400)).interval for tasks in rewards]
    held = sum(interval.low <= 0.5 <= interval.high for interval in found) / len(found)
    assert 0.93 <= held <= 0.97
