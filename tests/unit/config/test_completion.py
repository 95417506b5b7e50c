"""Whether unfinished work rejects a strict run."""

import pytest

from rollbook.config.collection import RolloutCollectionConfig
from rollbook.errors import IncompleteEvaluationError


def row(task, rollout=0, **fields):
    return {"_ng_task_index": task, "_ng_rollout_index": rollout} | fields


def rejection(expected, results=(), *, strict=True, **more):
    settings = RolloutCollectionConfig(
        input_jsonl_fpath="in.jsonl", output_jsonl_fpath="r.jsonl", require_complete=strict
    )
    return settings.completion_rejection(expected, list(results), **{"retryable": False, "made_progress": True} | more)


FAILED = row(1, _ng_failure_class="x")
GONE = row(1, _ng_no_persist=True)


@pytest.mark.parametrize(
    ("expected", "results", "more", "is_rejected"),
    [
        (2, [row(0), row(1)], {}, False),
        (2, [row(0), row(0)], {}, True),
        (2, [row(0), row(0, 1)], {}, False),
        (2, [row(0), row(0, stage_index=1)], {}, False),
        (2, [row(0), FAILED], {}, True),
        (2, [row(0), GONE], {}, True),
        (2, [row(0), row(1, mask_sample=True)], {}, False),
        (2, [row(0)], {"final_zero_rows": [FAILED]}, False),
        (2, [row(0)], {"completed": 1, "final_zero_rows": [FAILED]}, True),
        (2, [], {"completed": 2}, False),
        (2, [row(0)], {"intentionally_omitted": 1}, False),
        (2, [], {"intentionally_omitted": 2}, True),
        (0, [], {}, False),
        (2, [], {"strict": False}, False),
    ],
)
def test_a_strict_run_is_rejected_unless_every_rollout_is_completed_or_omitted_beside_completed_ones(
    expected, results, more, is_rejected
):
    assert (rejection(expected, results, **more) is not None) is is_rejected


@pytest.mark.parametrize("retryable", [True, False])
@pytest.mark.parametrize("made_progress", [True, False])
def test_the_rejection_carries_what_the_caller_knows(retryable, made_progress):
    error = rejection(2, [row(0)], retryable=retryable, made_progress=made_progress)
    assert (error.retryable, error.made_progress) == (retryable, made_progress)
    assert str(error).startswith("EVAL FAILED: 1/2 samples completed. Partial artifacts retained at r.jsonl")


def test_checking_raises_the_rejection_and_needs_to_be_told_whether_more_could_be_done():
    settings = RolloutCollectionConfig(
        input_jsonl_fpath="in.jsonl", output_jsonl_fpath="r.jsonl", require_complete=True
    )
    with pytest.raises(IncompleteEvaluationError, match="0/1 samples"):
        settings.check_completion(1, [], retryable=True, made_progress=False)
    with pytest.raises(TypeError):
        settings.check_completion(1, [])
    settings.check_completion(1, [row(0)], retryable=False, made_progress=True)
