"""What a score covers, in words."""

import pytest

from rollbook.records.standing import Coverage
from rollbook.scoring.coverage_report import ScoreShare
from rollbook.scoring.coverage_text import MetricsCoverage, coverage_line

ROUTED = {"agent_run_error": 2}
SOURCE = "2 agent_run_error routed this run; see r_failures.jsonl"
OTHERS = "1 masked, 2 without a reward, 1 interrupted, 1 never started, 2 in flight"


@pytest.mark.parametrize(
    ("coverage", "lines"),
    [
        (
            MetricsCoverage(10, 7, 1, ROUTED, "r_failures.jsonl"),
            (
                f"Rollouts missing from the score: 3 of 10 materialized ({SOURCE})",
                "Metrics cover: 7 of 10 rollouts",
                "Scored as zero because they left no row: 1 of 10 rollouts",
            ),
        ),
        (
            MetricsCoverage(3, 1),
            ("Rollouts missing from the score: 2 of 3 materialized", "Metrics cover: 1 of 3 rollouts"),
        ),
        (MetricsCoverage(3, 3, 1), ("Scored as zero because they left no row: 1 of 3 rollouts",)),
        (MetricsCoverage(3, 3, 0), ()),
    ],
)
def test_the_fields_lines_appear_only_where_they_say_something(coverage, lines):
    assert coverage.lines() == lines


def test_imputed_rollouts_are_exported_only_where_imputing_was_asked_for():
    counts = {"coverage/expected": 10, "coverage/scored": 7, "coverage/missing": 3}
    assert MetricsCoverage(10, 7).metrics() == counts
    assert MetricsCoverage(10, 7, 0).metrics() == counts | {"coverage/imputed": 0}


@pytest.mark.parametrize(
    ("coverage", "line"),
    [
        (Coverage(planned=3, scored=3), "Coverage: 3 of 3 rollouts scored"),
        (
            Coverage(planned=20, scored=17, failed=2, untouched=1, failed_by_class={"b": 1, "a": 1}),
            "Coverage: 17 of 20 rollouts scored (2 failed (1 a, 1 b), 1 untouched)",
        ),
        (
            Coverage(planned=7, masked=1, unscored=2, interrupted=1, never_started=1, in_flight=2),
            f"Coverage: 0 of 7 rollouts scored ({OTHERS})",
        ),
    ],
)
def test_the_coverage_line_names_what_became_of_every_planned_rollout(coverage, line):
    assert coverage.law_holds
    assert coverage_line(coverage) == line


def test_the_exported_shares_of_a_plan_add_up_to_it_and_what_left_a_result_is_not_missing():
    share = ScoreShare(expected=20, scored=10, masked=1, unscored=2, imputed=3).metrics()
    assert share == {
        "coverage/expected": 20,
        "coverage/scored": 10,
        "coverage/masked": 1,
        "coverage/unscored": 2,
        "coverage/imputed": 3,
        "coverage/missing": 4,
    }
