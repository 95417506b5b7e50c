"""A policy held against differences."""

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
from rollbook.compare.row_difference import row_difference


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
    (share(16), share(16), TEN | {"non_inferiority": True}, Ruling.PASS),
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


def metric(delta, ends=None):
    return MetricRow("m", 0.5, 0.5 + delta, None, None, delta, 100 * delta / 0.5, ends)


def metric_ruling(row, coverage=(1.0, 1.0), **tier):
    wanted = {"name": "t", "metric": "m", "max_drop": 0.1} | tier
    (demand,) = Policy.model_validate({"tiers": [wanted]}).demands()
    facts = metric_facts(row, lower_is_better=demand.tier.lower_is_better)
    return gate_of(list(ruled_by_metric(demand, facts, coverage)))


@pytest.mark.parametrize(
    ("row", "more", "expected"),
    [
        (metric(-0.05), {}, Ruling.PASS),
        (metric(-0.2), {}, Ruling.BLOCK),
        (metric(0.2), {"lower_is_better": True}, Ruling.BLOCK),
        (metric(-0.2), {"lower_is_better": True}, Ruling.PASS),
        (metric(-0.2, (-0.5, 0.1)), {"require_significance": True}, Ruling.INCONCLUSIVE),
        (metric(-0.2, (-0.3, -0.1)), {"require_significance": True}, Ruling.BLOCK),
        (metric(-0.2), {"require_significance": True}, Ruling.INCONCLUSIVE),
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
