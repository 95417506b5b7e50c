"""What a run is judged by once it ended: what counts as done, and how much may fail or be missing."""

from types import MappingProxyType

import pytest

from rollbook.api.conclusion import Ended, rejection
from rollbook.config.collection import RolloutCollectionConfig
from rollbook.errors import IncompleteEvaluationError, NothingProducedError
from rollbook.ledger.paths import RunPaths
from rollbook.records.coverage import Coverage

TOGETHER = MappingProxyType({"scored": 2})


def concluded(tmp_path, coverage, *, sent=1, counts=False, **settings):
    asked = {"input_jsonl_fpath": "i.jsonl", "output_jsonl_fpath": str(tmp_path / "r.jsonl")} | settings
    paths = RunPaths(tmp_path / "r.jsonl")
    return rejection(Ended(RolloutCollectionConfig(**asked), paths, coverage, sent, counts=counts, made_progress=True))


@pytest.mark.parametrize(
    ("coverage", "done"),
    [
        (Coverage(planned=3, scored=3), None),
        (Coverage(planned=3, scored=2, masked=1), None),
        (Coverage(planned=3, scored=2, failed=1, settled=1, final_zeros=1), None),
        (Coverage(planned=3, scored=2, failed=1, settled=1), "2/3"),
        (Coverage(planned=3, scored=2, masked=1, approved=1), "2/3"),
        (Coverage(planned=3, scored=2, interrupted=1, with_task=TOGETHER), "0/3"),
    ],
)
def test_what_runs_again_is_not_done_and_a_score_of_0_for_good_is(tmp_path, coverage, done):
    error = concluded(tmp_path, coverage, require_complete=True)
    assert (error is None) == (done is None)
    assert done is None or f"EVAL FAILED: {done} samples completed" in str(error)


@pytest.mark.parametrize(
    ("coverage", "limits", "told"),
    [
        (Coverage(planned=10, scored=8, failed=2), {"max_failed_fraction": 0.2}, None),
        (Coverage(planned=10, scored=7, failed=3), {"max_failed_fraction": 0.2}, "3 of 10 rollouts failed"),
        (Coverage(planned=10, scored=7, failed=3, final_zeros=1), {"max_failed_fraction": 0.2}, None),
        (Coverage(planned=10, scored=9, failed=1), {"max_failed_fraction": 0.0}, "1 of 10 rollouts failed"),
        (Coverage(planned=10, scored=8, untouched=2), {"max_missing_fraction": 0.2}, None),
        (Coverage(planned=10, scored=7, never_started=3), {"max_missing_fraction": 0.2}, "3 of 10 rollouts left"),
    ],
)
def test_a_limit_may_be_reached_and_not_passed(tmp_path, coverage, limits, told):
    error = concluded(tmp_path, coverage, **limits)
    assert (error is None) == (told is None)
    assert told is None or (isinstance(error, IncompleteEvaluationError) and told in str(error))


def test_a_run_without_a_result_came_to_nothing_unless_what_it_left_counts_as_zero(tmp_path):
    coverage = Coverage(planned=2, failed=2, exhausted=2)
    assert isinstance(concluded(tmp_path, coverage, require_complete=True), NothingProducedError)
    assert concluded(tmp_path, coverage, counts=True) is None
    assert "a resume would run nothing" in str(concluded(tmp_path, coverage, sent=0))
