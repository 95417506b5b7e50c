"""An aggregation that is short of something: what is said of it, and what may still be done."""

import pytest
from omegaconf import OmegaConf

from rollbook.api.rollout_aggregation import aggregate_shards
from rollbook.config.collection import RolloutAggregationConfig
from rollbook.errors import IncompleteEvaluationError
from saved_run import append, failed, planned

SERVED = {"_ng_environment_server": "e"}


async def aggregated(inputs, output, **settings):
    asked = {"input_glob": str(inputs), "output_jsonl_fpath": str(output), "disable_health_check": True} | settings
    return await aggregate_shards(RolloutAggregationConfig(**asked), OmegaConf.create({}))


def shard(folder, *, with_plan=True, failure=None):
    """Return a run of two rollouts, of which one is scored and one is not."""
    output = folder / "r.jsonl"
    append(output, planned(0, 0, **SERVED, reward=1.0))
    for task in (0, 1) if with_plan else ():
        append(folder / "r_materialized_inputs.jsonl", planned(task, 0, **SERVED))
    if failure is not None:
        append(folder / "r_failures.jsonl", planned(1, 0, **SERVED) | failed() | failure)
    return output


@pytest.mark.parametrize(
    ("failure", "again"),
    [(None, True), ({}, True), ({"_ng_failure_terminal": True}, False)],
    ids=["none", "one", "for good"],
)
async def test_a_resume_is_advised_only_where_one_would_run_something(tmp_path, failure, again):
    with pytest.raises(IncompleteEvaluationError, match="1/2 samples completed") as caught:
        await aggregated(shard(tmp_path, failure=failure), tmp_path / "all.jsonl", require_complete=True)
    assert ("--resume" in str(caught.value), caught.value.retryable) == (again, again)


@pytest.mark.parametrize(
    ("failure", "told"),
    [
        (None, "no plan lies beside"),
        ({"_ng_failure_terminal": True}, "no plan lies beside"),
        ({}, "1/2 samples completed"),
    ],
)
async def test_what_is_known_to_be_missing_is_told_before_what_no_plan_tells(tmp_path, failure, told):
    output = shard(tmp_path, with_plan=False, failure=failure)
    with pytest.raises(IncompleteEvaluationError, match=told):
        await aggregated(output, tmp_path / "all" / "all.jsonl", require_complete=True)


async def test_metrics_of_an_earlier_aggregation_do_not_stay_where_nothing_is_scored(tmp_path):
    append(tmp_path / "r_materialized_inputs.jsonl", planned(0, 0, **SERVED))
    (tmp_path / "r.jsonl").touch()
    earlier = tmp_path / "all_aggregate_metrics.json"
    earlier.write_text("[]")
    result = await aggregated(tmp_path / "r.jsonl", tmp_path / "all.jsonl")
    assert any("nothing is scored" in note for note in result.notes)
    assert not earlier.exists()
