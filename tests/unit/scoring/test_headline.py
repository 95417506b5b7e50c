"""The number that a run is known by, and what stands beside it."""

import pytest

from rollbook.records.disposition import DEFAULT_RULES
from rollbook.records.headline import Range
from rollbook.records.identity import RolloutKey
from rollbook.records.outcome import Failed, Masked, Scored, Unscored
from rollbook.records.record import Record
from rollbook.records.standing import Standings
from rollbook.scoring.headline import MIN_COVERAGE, headline_of, measured
from rollbook.scoring.imputation import NOTHING_COUNTED, Counting
from rollbook.scoring.tally import scores_of


def headline(tasks, planned=None, least=None, imputed=0):
    planned = sum(map(len, tasks)) if planned is None else planned
    return headline_of(measured(lambda: tasks, planned, imputed), least)


def test_everything_measured_is_a_headline_with_an_interval_and_no_room_between_its_bounds():
    found = headline([[1.0, 0.0], [1.0, 1.0]])
    assert (found.value, found.withheld, found.coverage) == (0.75, None, 1.0)
    assert found.bounds == Range(0.75, 0.75)
    assert found.interval.low < 0.75 < found.interval.high
    assert found.interval.low + found.interval.high == pytest.approx(1.5)


@pytest.mark.parametrize(
    ("tasks", "goes_beyond"),
    [
        ([[1.0], [1.0], [1.0], [0.0]], True),
        ([[0.0], [0.0], [0.0], [1.0]], True),
        ([[1.0, 0.0], [0.0, 1.0], [0.5, 0.4]], False),
        ([[1.0], [1.0]], False),
        ([[1.0]], False),
        ([[2.0], [0.0], [2.0]], False),
    ],
)
def test_an_interval_is_not_cut_and_says_where_it_goes_beyond_what_rewards_reach(tasks, goes_beyond):
    found = headline(tasks)
    assert found.interval_beyond_rewards is goes_beyond
    assert found.to_json()["interval_beyond_rewards"] is goes_beyond
    assert not goes_beyond or found.interval.low < 0 or found.interval.high > 1


def test_what_is_missing_could_all_have_been_0_or_all_1():
    found = headline([[1.0, 1.0], [1.0, 1.0], [1.0]], planned=8)
    assert found.bounds == Range(0.625, 1.0)


def test_rewards_beyond_one_have_no_bounds():
    assert headline([[2.0], [0.0]], planned=3).bounds is None
    assert headline([[-0.5], [0.0]], planned=3).bounds is None


@pytest.mark.parametrize(
    ("scored", "least", "is_withheld"),
    [(94, None, True), (95, None, False), (100, None, False), (94, 0.94, False), (99, 1.0, True), (1, 0.0, False)],
)
def test_a_headline_speaks_for_the_share_of_the_plan_that_was_asked_for_or_is_withheld(scored, least, is_withheld):
    found = headline([[1.0]] * scored, planned=100, least=least)
    assert (found.value is None) is is_withheld
    assert found.observed.mean == 1.0
    assert found.min_coverage == (MIN_COVERAGE if least is None else least)


def test_why_there_is_no_headline_says_the_share_and_the_flag():
    assert headline([[1.0]] * 5, planned=8).withheld == (
        "5 of 8 rollouts are measured (62.5 %), and --min-coverage asks for 95 %"
    )


def test_nothing_scored_is_no_headline_whatever_was_asked_for():
    found = headline([], planned=3, least=0.0)
    assert (found.withheld, found.interval, found.bounds) == ("nothing is scored", None, Range(0.0, 1.0))


@pytest.mark.parametrize("tasks", [[[1.0, 0.0]], [[1.0], [1.0], [1.0]], [[0.0], [0.0]], [[0.1] * 3, [0.1] * 3]])
def test_one_task_or_tasks_that_all_agree_have_no_interval(tasks):
    assert headline(tasks).interval is None


def fold(outcomes):
    standings = Standings()
    for number, outcome in enumerate(outcomes):
        key = RolloutKey(number // 2, number % 2)
        standings.plan(key, "a")
        if outcome is not None:
            standings.add(Record(key, 0, outcome, agent="a"))
    return standings


ENDINGS = [Scored(1.0), Failed("judge_failed"), Failed("gone", counts_as_zero=True), Masked(1.0), Unscored(), None]


@pytest.mark.parametrize(
    ("counting", "mean", "imputed"),
    [
        (NOTHING_COUNTED, 1 / 2, 1),
        (Counting(frozenset({"judge_failed"})), 1 / 3, 2),
        (Counting(missing=True), 1 / 3, 2),
        (Counting(frozenset({"judge_failed"}), missing=True), 1 / 4, 3),
    ],
)
def test_what_counts_as_zero_is_in_the_mean_the_coverage_and_pass_at_k(counting, mean, imputed):
    (agent,) = scores_of(fold(ENDINGS), DEFAULT_RULES, counting).agents
    found = agent.headline()
    assert (agent.mean, agent.imputed) == (pytest.approx(mean), imputed)
    assert found.coverage == (1 + imputed) / 6
    assert sum(estimate.tasks + estimate.short_tasks for estimate in agent.pass_at_k if estimate.k == 1) == 3
    assert agent.coverage.scored == 1


def test_rollouts_that_count_as_zero_are_still_listed_by_how_they_ended():
    scores = scores_of(fold([Scored(1.0), Scored(1.0), *[Failed("x")] * 2]), DEFAULT_RULES, Counting(frozenset("x")))
    (worst,) = scores.worst
    assert (worst.task, worst.mean, worst.coverage.failed) == (1, 0.0, 2)


def test_a_mean_that_no_float_holds_is_too_large_and_not_absent():
    found = headline_of(measured(lambda: [[1e308], [1e308]], 2))
    assert found.value is None
    assert "too large to be represented" in found.withheld
    assert headline_of(measured(list, 2)).withheld == "nothing is scored"
