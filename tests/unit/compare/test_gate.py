"""A policy held against differences."""

from dataclasses import replace

import pytest

from compared_sides import of, side
from rollbook.compare.gate import (
    EXIT_CODES,
    Ruling,
    gate_of,
    metric_facts,
    ruled_by_metric,
    ruled_by_rows,
    without_data,
)
from rollbook.compare.metric_difference import MetricRow
from rollbook.compare.pairing import paired
from rollbook.compare.policy import Policy
from rollbook.compare.row_difference import Bounds, row_difference
from rollbook.compare.side import Said
from rollbook.compare.welch import Welch


def run(rewards, count=20):
    return side(*(of(*rewards(place)) for place in range(count)))


def share(right, count=20):
    """Return a run of which so many tasks are right."""
    return run(lambda place: (float(place < right),), count)


def partly(right, missing):
    return run(lambda place: ("missing",) if place < missing else (float(place < missing + right),))


def rules(baseline, candidate, **policy):
    found = row_difference(baseline, candidate, paired(baseline, candidate, (("a", "a"),)))
    (demand,) = Policy.model_validate(policy).demands()
    return list(ruled_by_rows(demand, found, found.test.p_value))


def ruling(baseline, candidate, **policy):
    return gate_of(rules(baseline, candidate, **policy))


TEN = {"max_drop": 0.1}
TABLE = [
    (share(16), share(16), TEN, Ruling.PASS),
    (share(16), share(20), TEN, Ruling.PASS),
    (share(16), share(14), TEN, Ruling.PASS),
    (share(16), share(13), TEN, Ruling.BLOCK),
    (share(16), share(13), TEN | {"severity": "warn"}, Ruling.WARN),
    (share(16), share(14), {"max_relative_drop": 0.12}, Ruling.BLOCK),
    (share(16), share(14), {"max_relative_drop": 0.125}, Ruling.PASS),
    (share(0), share(0), {"max_relative_drop": 0.0}, Ruling.PASS),
    (share(16), share(13), TEN | {"require_significance": True}, Ruling.INCONCLUSIVE),
    (share(20), share(0), TEN | {"require_significance": True}, Ruling.BLOCK),
    (share(16), share(15), TEN | {"non_inferiority": True}, Ruling.INCONCLUSIVE),
    (share(16), share(16), TEN | {"non_inferiority": True}, Ruling.INCONCLUSIVE),
    (share(16, 40), share(16, 40), TEN | {"non_inferiority": True}, Ruling.PASS),
    (share(2, 2), share(2, 2), {"max_drop": 0.02, "non_inferiority": True}, Ruling.INCONCLUSIVE),
    (share(600, 1000), share(600, 1000), {"max_drop": 0.02, "non_inferiority": True}, Ruling.PASS),
    (share(16), share(16), TEN | {"min_tasks": 21}, Ruling.INCONCLUSIVE),
    (share(16), share(0), TEN | {"min_tasks": 21}, Ruling.INCONCLUSIVE),
    (share(16), partly(16, missing=2), TEN, Ruling.INCONCLUSIVE),
    (partly(16, missing=2), share(16), TEN, Ruling.INCONCLUSIVE),
    (share(16), partly(16, missing=2), TEN | {"min_coverage": 0.9}, Ruling.PASS),
    (share(20), partly(0, missing=10), TEN, Ruling.BLOCK),
    (share(20), partly(0, missing=10), TEN | {"severity": "warn"}, Ruling.INCONCLUSIVE),
    (share(16), partly(16, missing=2), TEN | {"on_inconclusive": "warn"}, Ruling.WARN),
    (share(16), partly(16, missing=2), TEN | {"on_inconclusive": "block"}, Ruling.BLOCK),
    (share(16), share(10, count=10), TEN, Ruling.INCONCLUSIVE),
    (share(16), share(10, count=10), TEN | {"min_paired": 0.5}, Ruling.PASS),
    (share(16), run(lambda _: ("missing",)), TEN, Ruling.INCONCLUSIVE),
    (run(lambda _: ("missing",)), share(16), TEN | {"min_coverage": 0.0}, Ruling.INCONCLUSIVE),
    (run(lambda _: ("failed (x)",)), run(lambda _: ("failed (x)",)), TEN, Ruling.INCONCLUSIVE),
]


@pytest.mark.parametrize(("baseline", "candidate", "policy", "expected"), TABLE)
def test_the_gate_is_what_the_table_says(baseline, candidate, policy, expected):
    assert ruling(baseline, candidate, **policy) is expected


def test_a_fall_is_significant_only_where_the_mean_falls():
    rise = row_difference(share(0), share(20), paired(share(0), share(20), (("a", "a"),)))
    (demand,) = Policy.model_validate({"max_drop": 0.0, "require_significance": True}).demands()
    missing = replace(rise, bounds=Bounds(-1.0, -0.5, 1.0), baseline=replace(rise.baseline, expected=40))
    assert gate_of(list(ruled_by_rows(demand, missing, 0.001))) is Ruling.INCONCLUSIVE


def without_plan(right=16):
    return side(*(of(float(place < right)) for place in range(20)), has_plan=False)


@pytest.mark.parametrize("sides", [(without_plan(), share(16)), (share(16), without_plan())])
def test_what_no_plan_covers_is_unknown_unless_the_policy_takes_it_for_all(sides):
    found = rules(*sides, **TEN)
    assert gate_of(found) is Ruling.INCONCLUSIVE
    assert [rule.found for rule in found if rule.rule == "min_coverage" and "no plan" in rule.why] == [None]
    assert any("`assume_complete: true` in the policy takes what is there for all" in rule.why for rule in found)
    assert ruling(*sides, **TEN, assume_complete=True) is Ruling.PASS
    assert ruling(*sides, **TEN, min_coverage=0.0, min_paired=0.95) is Ruling.PASS


def test_nothing_is_broken_by_bounds_that_know_no_plan():
    partly_there = side(*(of(*(("missing",) if place < 10 else (0.0,))) for place in range(20)), has_plan=False)
    assert ruling(share(20), partly_there, **TEN) is Ruling.INCONCLUSIVE
    assert ruling(share(20), partly_there, **TEN, assume_complete=True) is Ruling.BLOCK


def changed(content):
    return side(*(of(1.0, content=100 * content + place, prompt=place + 1) for place in range(20)))


def test_tasks_that_changed_do_not_pass_unless_the_policy_allows_them():
    (rule,) = [rule for rule in rules(changed(1), changed(2), **TEN) if rule.rule == "allow_changed_tasks"]
    assert (rule.found, rule.ruling) == (20, Ruling.INCONCLUSIVE)
    assert ruling(changed(1), changed(2), **TEN, allow_changed_tasks=True) is Ruling.PASS
    assert ruling(changed(1), changed(1), **TEN) is Ruling.PASS


def counting(count):
    made = side(label="run")
    for place in range(20):
        if place < count:
            made.add_counted(0, "timeout_exceeded", 0.0)
        else:
            made.add_scored(0, 1.0)
        made.end_unit(place, "a")
        made.say(place, Said(place + 1, place + 1))
    return made


def test_a_failure_that_counts_as_zero_is_a_fall_and_covered():
    assert ruling(share(20), counting(1), max_drop=0.02) is Ruling.BLOCK
    assert ruling(share(20), counting(0), max_drop=0.02) is Ruling.PASS
    facts = row_difference(share(20), counting(1), paired(share(20), counting(1), (("a", "a"),)))
    assert (facts.candidate.scored, facts.candidate.counted, facts.candidate.coverage) == (19, 1, 1.0)
    assert facts.difference == pytest.approx(-0.05)
    assert (facts.bounds.low, facts.bounds.high) == pytest.approx((-0.05, -0.05))


def test_what_the_gate_comes_to_is_its_exit_code():
    assert {found.value: code for found, code in EXIT_CODES.items()} == {
        "PASS": 0,
        "WARN": 0,
        "BLOCK": 6,
        "INCONCLUSIVE": 7,
    }


def test_every_rule_has_its_limit_and_what_was_found():
    (tasks, *coverage, drop) = rules(share(16), share(13), **TEN)
    assert (tasks.rule, tasks.limit, tasks.found) == ("min_tasks", 1, 20)
    assert [rule.rule for rule in coverage] == ["min_coverage", "min_coverage", "min_paired", "min_paired"]
    assert (drop.rule, drop.limit, round(drop.found, 9), drop.ruling) == ("max_drop", 0.1, 0.15, Ruling.BLOCK)


def test_a_block_by_the_best_case_tells_that_case():
    drop = rules(share(20), partly(0, missing=10), **TEN)[-1]
    assert (drop.found, drop.ruling) == (0.5, Ruling.BLOCK)
    assert "best case" in drop.why


def test_no_rule_passes_nothing():
    assert gate_of([]) is Ruling.INCONCLUSIVE


def metric(delta, error=None):
    return MetricRow(
        "m",
        0.5,
        0.5 + delta,
        None,
        None,
        delta,
        100 * delta / 0.5,
        None,
        None if error is None else Welch(delta, error, 8),
    )


def metric_ruling(row, coverage=(1.0, 1.0), alpha=0.05, p_value=None, **tier):
    wanted = {"name": "t", "metric": "m", "max_drop": 0.1} | tier
    (demand,) = Policy.model_validate({"tiers": [wanted], "alpha": alpha}).demands()
    facts = metric_facts(row, demand, row.welch.p_value if row.welch and p_value is None else p_value)
    return gate_of(list(ruled_by_metric(demand, facts, coverage)))


@pytest.mark.parametrize(
    ("row", "more", "expected"),
    [
        (metric(-0.05), {}, Ruling.PASS),
        (metric(-0.2), {}, Ruling.BLOCK),
        (metric(0.2), {"lower_is_better": True}, Ruling.BLOCK),
        (metric(-0.2), {"lower_is_better": True}, Ruling.PASS),
        (metric(-0.2, 0.12), {"require_significance": True}, Ruling.INCONCLUSIVE),
        (metric(-0.2, 0.05), {"require_significance": True}, Ruling.BLOCK),
        (metric(-0.2, 0.05), {"require_significance": True, "alpha": 0.001}, Ruling.INCONCLUSIVE),
        (metric(-0.2, 0.05), {"require_significance": True, "p_value": 0.06}, Ruling.INCONCLUSIVE),
        (metric(0.2, 0.05), {"require_significance": True, "lower_is_better": True}, Ruling.BLOCK),
        (metric(-0.2), {"require_significance": True}, Ruling.INCONCLUSIVE),
        (metric(-0.02, 0.03), {"non_inferiority": True}, Ruling.PASS),
        (metric(-0.02, 0.03), {"non_inferiority": True, "alpha": 0.001}, Ruling.INCONCLUSIVE),
        (metric(0.0, 0.0), {"non_inferiority": True}, Ruling.INCONCLUSIVE),
        (metric(-0.05), {"coverage": (None, 1.0), "assume_complete": True}, Ruling.PASS),
        (metric(-0.05), {"coverage": (None, 0.5), "assume_complete": True}, Ruling.INCONCLUSIVE),
        (metric(-0.05), {"coverage": (0.9, 1.0)}, Ruling.INCONCLUSIVE),
        (metric(-0.05), {"coverage": (None, 1.0)}, Ruling.INCONCLUSIVE),
        (metric(-0.05), {"coverage": (None, 1.0), "min_coverage": 0.0}, Ruling.PASS),
    ],
)
def test_a_metric_is_held_to_its_own_interval_and_coverage(row, more, expected):
    assert metric_ruling(row, **more) is expected


def test_what_is_not_there_is_undecided():
    (demand,) = Policy.model_validate(TEN).demands()
    (rule,) = without_data(demand, "no rows")
    assert (rule.ruling, rule.found, rule.why) == (Ruling.INCONCLUSIVE, None, "no rows")
