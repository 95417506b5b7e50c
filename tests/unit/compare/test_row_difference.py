"""The difference of two runs by their rows, beside what it covers."""

import math

import pytest

from compared_sides import of, side
from rollbook.compare.flips import flips_of
from rollbook.compare.pairing import paired
from rollbook.compare.row_difference import row_difference
from rollbook.compare.scored_pairs import ScoredPairs
from rollbook.compare.side import facts_of, state_of
from rollbook.compare.transitions import transitions
from rollbook.compare.verdict import Verdict, judged
from rollbook.records.disposition import Disposition
from rollbook.records.outcome import Failed, Scored

BOTH = (("a", "a"),)


def compared(baseline, candidate):
    return row_difference(baseline, candidate, paired(baseline, candidate, BOTH))


def verdict(baseline, candidate, min_coverage=0.95):
    found = compared(baseline, candidate)
    return judged(found, found.test.p_value, alpha=0.05, min_coverage=min_coverage).verdict


def test_every_task_weighs_the_same_whatever_its_repeats():
    found = compared(side(of(1.0, 1.0, 1.0, 0.0), of(0.0)), side(of(1.0, 0.0), of(1.0, 1.0)))
    assert found.baseline_mean == 0.375
    assert found.candidate_mean == 0.75
    assert found.difference == 0.375
    assert (found.baseline.few, found.baseline.many) == (1, 4)


def test_means_that_are_equal_differ_by_nothing_although_the_means_of_their_tasks_are_rounded():
    found = compared(side(of(1.0, 1.0, 0.0), of(1.0, 0.0, 0.0)), side(of(1.0, 1.0, 0, 0, 0), of(1.0, 1.0, 1.0, 0, 0)))
    assert (2 / 5 - 2 / 3) + (3 / 5 - 1 / 3) != 0
    assert (found.baseline_mean, found.candidate_mean, found.difference) == (0.5, 0.5, 0.0)


@pytest.mark.parametrize("size", [0.1, 0.7, 1e-9, 1e6, 3e200])
def test_tasks_whose_means_rounding_alone_tells_apart_are_ties_in_the_test_its_signs_and_the_interval(size):
    thrice, once = [side(*[of(*[size] * repeats)] * 20) for repeats in (3, 1)]
    found = compared(thrice, once)
    assert (found.difference, found.test.p_value, found.standard_error) == (0, 1.0, 0)
    one_rises = compared(side(*[of(size, size, size)] * 19, of(0.0)), side(*[of(size)] * 19, of(10 * size)))
    assert (one_rises.test.signs, one_rises.test.p_value) == (None, 1.0)
    assert one_rises.interval.low == 0.0


def test_a_task_whose_rewards_cancel_out_but_for_rounding_is_a_tie():
    assert sum((0.1, 0.2, -0.3)) != 0
    assert compared(side(*[of(0.1, 0.2, -0.3)] * 20), side(*[of(0.0)] * 20)).test.p_value == 1.0


def test_tasks_whose_differences_cancel_out_but_for_rounding_leave_no_difference():
    found = compared(side(of(0.0), of(0.0), of(0.0)), side(of(0.1), of(0.2), of(-0.3)))
    assert found.difference == 0.0


def test_ties_by_rounding_do_not_flip_and_are_not_listed():
    ours, theirs = side(*[of(1e6 + 0.3, 1e6 + 0.3, 1e6 + 0.3)] * 5), side(*[of(1e6 + 0.3)] * 5)
    pairs = ScoredPairs(ours, theirs, paired(ours, theirs, BOTH))
    assert all(before == after for before, after in pairs.means())
    flips = flips_of(pairs.moves, pairs.change, binary=False)
    assert (flips.regressed, flips.improved, flips.listed) == (0, 0, ())


def test_a_difference_that_is_small_and_no_rounding_stays():
    assert compared(side(of(1e-12), of(0.0)), side(of(3e-12), of(0.0))).difference == pytest.approx(1e-12)


def test_what_is_not_scored_is_counted_and_never_zero():
    found = compared(side(of(1.0, "masked"), of(1.0)), side(of(1.0, "missing"), of("failed (x)")))
    assert found.scored_pairs == 1
    assert found.difference == 0
    assert found.candidate.states == {"scored": 1, "missing": 1, "failed (x)": 1}
    assert found.candidate.coverage == 1 / 3


def test_the_bounds_hold_whatever_is_missing():
    found = compared(side(of(1.0, 0.0), of(1.0)), side(of(1.0, "missing"), of(0.0)))
    assert (found.bounds.low, found.bounds.high) == (-0.5, -0.25)
    assert found.bounds.baseline_at_best == 0.75


def test_a_task_on_one_side_only_may_be_anything_on_the_other():
    found = compared(side(of(1.0, content=1), of(0.5, content=2)), side(of(1.0, content=1)))
    assert (found.bounds.low, found.bounds.high) == (-0.25, 0.25)
    assert found.paired.first_only_baseline == (1,)
    assert (found.shared_baseline, found.shared_candidate) == (0.5, 1.0)


def test_rewards_beyond_zero_and_one_have_no_bounds():
    assert compared(side(of(5.0, "missing")), side(of(1.0))).bounds is None


def test_without_a_plan_every_task_is_taken_to_have_as_many_rollouts_as_the_one_that_has_most():
    facts = facts_of(side(of(1.0, 1.0, 1.0, 1.0), of(1.0, 1.0), has_plan=False), range(2))
    assert (facts.expected, facts.scored, facts.coverage) == (8, 6, 0.75)
    assert facts.states == {"scored": 6, "missing": 2}


@pytest.mark.parametrize(
    ("disposition", "state"),
    [
        (Disposition.SCORED, "scored"),
        (Disposition.MASKED, "masked"),
        (Disposition.APPROVED, "masked"),
        (Disposition.UNSCORED, "unscored"),
        (Disposition.HELD, "failed (judge_failed)"),
        (Disposition.RETRYABLE, "failed (judge_failed)"),
        (Disposition.SETTLED, "failed (judge_failed)"),
        (Disposition.EXHAUSTED, "failed (judge_failed)"),
        (Disposition.INTERRUPTED, "missing"),
        (Disposition.HELD_INTERRUPTED, "missing"),
        (Disposition.NEVER_STARTED, "missing"),
        (Disposition.IN_FLIGHT, "missing"),
        (Disposition.UNTOUCHED, "missing"),
    ],
)
def test_every_standing_has_one_state(disposition, state):
    assert state_of(disposition, Failed("judge_failed")) == state
    assert len(list(Disposition)) == 13


def test_a_result_that_runs_again_is_missing_and_not_failed():
    assert state_of(Disposition.IN_FLIGHT, Scored(1.0)) == "missing"


def test_transitions_put_repeats_side_by_side():
    baseline = side(of(1.0, 1.0, "failed (x)"), of(1.0))
    candidate = side(of(1.0, "missing"), of("failed (x)"))
    counts = transitions(baseline, candidate, paired(baseline, candidate, BOTH))
    assert counts == {
        ("failed (x)", "no repeat"): 1,
        ("scored", "failed (x)"): 1,
        ("scored", "missing"): 1,
        ("scored", "scored"): 1,
    }


def flips(baseline, candidate, most=None):
    scored = ScoredPairs(baseline, candidate, paired(baseline, candidate, BOTH))
    return flips_of(scored.moves, scored.change, binary=scored.is_binary(), most=most)


def test_a_flip_crosses_one_half_and_regressions_come_first():
    baseline = side(of(1.0, 1.0, 0.0), of(0.0), of(1.0), of(1.0, 0.0), of(1.0))
    found = flips(baseline, side(of(0.0), of(1.0), of(0.0), of(1.0), of(1.0)))
    assert (found.kind, found.regressed, found.improved, found.tied, found.tasks) == ("binary", 2, 1, 1, 5)
    assert [change.baseline_task for change in found.listed] == [2, 0, 1]
    assert found.listed[1].baseline_rewards == (1.0, 1.0, 0.0)


def test_other_rewards_are_listed_by_how_far_they_moved():
    found = flips(side(of(0.2), of(0.9), of(0.5)), side(of(0.9), of(0.8), of(0.5)))
    assert (found.kind, found.regressed, found.improved) == ("continuous", 1, 1)
    assert [change.baseline_task for change in found.listed] == [0, 1]


def test_counts_are_of_all_flips_and_the_list_of_the_first():
    baseline, candidate = side(*(of(1.0) for _ in range(30))), side(*(of(0.0) for _ in range(30)))
    found = flips(baseline, candidate, most=3)
    assert (found.regressed, len(found.listed)) == (30, 3)


def many(rewards, count=40, **fields):
    return side(*(of(*rewards(place), **fields) for place in range(count)))


def right(_place):
    return (1.0,)


def wrong(_place):
    return (0.0,)


def test_a_clear_difference_is_better_or_worse():
    assert verdict(many(right), many(wrong)) is Verdict.WORSE
    assert verdict(many(wrong), many(right)) is Verdict.BETTER
    assert verdict(many(right), many(right)) is Verdict.NO_DIFFERENCE


@pytest.mark.parametrize(("p_value", "said"), [(0.05, Verdict.NO_DIFFERENCE), (0.0499, Verdict.BETTER)])
def test_a_difference_is_shown_by_a_p_value_below_the_level_alone(p_value, said):
    found = compared(many(wrong), many(right))
    assert judged(found, p_value, alpha=0.05, min_coverage=0.95).verdict is said


def test_too_little_scored_is_inconclusive_unless_nothing_that_is_missing_could_turn_it():
    half = many(lambda place: (1.0,) if place % 2 else ("missing",))
    assert verdict(half, many(right)) is Verdict.COVERAGE
    assert verdict(many(right), half) is Verdict.COVERAGE
    nine_in_ten = many(lambda place: (0.0,) if place % 10 else ("missing",))
    assert verdict(many(right), nine_in_ten) is Verdict.WORSE
    assert verdict(many(right), nine_in_ten, min_coverage=0.5) is Verdict.WORSE


def test_nothing_scored_on_both_sides_is_inconclusive_whatever_is_asked():
    assert verdict(many(right), many(lambda _: ("missing",)), min_coverage=0.0) is Verdict.COVERAGE


def test_few_shared_tasks_are_too_little_to_tell():
    assert verdict(many(right), many(right, count=10)) is Verdict.COVERAGE


def test_the_mean_has_a_standard_error_only_with_two_tasks():
    assert compared(side(of(1.0)), side(of(0.0))).standard_error is None
    assert math.isfinite(compared(side(of(1.0), of(0.0)), side(of(0.0), of(0.0))).standard_error)


def test_rewards_near_the_largest_number_have_their_means_and_their_difference():
    huge = 2.0**1023
    found = compared(side(*(of(huge, huge) for _ in range(8))), side(*(of(huge, huge / 2) for _ in range(8))))
    assert (found.baseline_mean, found.candidate_mean) == (huge, 0.75 * huge)
    assert found.difference == -0.25 * huge
    assert found.test.p_value == pytest.approx(2 / 2**8)
    spread = compared(side(*(of(huge) for _ in range(8))), side(*(of(huge / (place + 1)) for place in range(8))))
    small = compared(side(*(of(1.0) for _ in range(8))), side(*(of(1 / (place + 1)) for place in range(8))))
    assert spread.standard_error == small.standard_error * huge
    assert (spread.test, spread.needed) == (small.test, small.needed)


def test_a_difference_beyond_the_largest_number_is_infinite_and_not_absent():
    found = compared(side(*(of(1.5e308) for _ in range(8))), side(*(of(-1.5e308) for _ in range(8))))
    assert found.difference == -math.inf
    assert judged(found, found.test.p_value, alpha=0.05, min_coverage=0.95).verdict is Verdict.WORSE


def unplanned(rewards):
    return side(*(of(*rewards(place)) for place in range(40)), has_plan=False)


@pytest.mark.parametrize("sides", [(unplanned(right), many(wrong)), (many(right), unplanned(wrong))])
def test_what_no_plan_covers_gives_no_verdict_unless_it_is_taken_for_all(sides):
    found = compared(*sides)
    judgement = judged(found, found.test.p_value, alpha=0.05, min_coverage=0.95)
    assert (judgement.verdict, ["no plan is there" in lack for lack in judgement.lacking]) == (Verdict.COVERAGE, [True])
    assert verdict(*sides, min_coverage=0.0) is Verdict.WORSE
    complete = judged(found, found.test.p_value, alpha=0.05, min_coverage=0.95, assume_complete=True)
    assert (complete.verdict, complete.lacking) == (Verdict.WORSE, ())


def test_a_single_task_against_the_mean_of_the_others_does_not_turn_the_verdict():
    ours, theirs = side(*(of(0.5) for _ in range(10))), side(*(of(0.4) for _ in range(9)), of(1.0))
    found = compared(ours, theirs)
    assert (found.test.name, found.test.signs.fell, found.test.signs.rose) == ("permutation", 9, 1)
    assert verdict(ours, theirs) is Verdict.NO_DIFFERENCE
