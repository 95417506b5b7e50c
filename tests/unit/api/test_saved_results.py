"""What `run_from_config` returns of a run with a history: each rollout once."""

import asyncio

import pytest
from aiohttp import web
from omegaconf import OmegaConf

from rollbook.api.rollout_collection import RolloutCollectionHelper
from rollbook.config import parser
from rollbook.config.collection import RolloutCollectionConfig
from run_folder import identities, identity
from stub import serving
from unit.api.shard_calls import ShardFolder, planned


@pytest.fixture
def shard(tmp_path):
    return ShardFolder(tmp_path / "run")


def resumed(shard, stub, **settings):
    config = RolloutCollectionConfig(
        input_jsonl_fpath=str(shard.paths.materialized_inputs),
        output_jsonl_fpath=str(shard.paths.output),
        resume_from_cache=True,
        disable_aggregation=True,
        retry_for_s=0,
        **settings,
    )
    parser.set_global_config_dict(OmegaConf.create(stub.config()))
    try:
        return asyncio.run(RolloutCollectionHelper().run_from_config(config))
    finally:
        parser.forget_global_config_dict()


def failing_first(row):
    return web.Response(status=500) if identity(row) == (1, 0, 0) else None


def test_of_a_group_that_was_sent_again_whole_the_latest_results_are_returned(shard):
    with serving(failing_first) as stub:
        asyncio.run(shard.collected(stub, planned(3, num_repeats=2)))
        results = resumed(shard, stub, group_scored=True)
    assert [identity(row) for row in results] == [(0, 0, 0), (0, 1, 0), (1, 0, 1), (1, 1, 1), (2, 0, 0), (2, 1, 0)]
    assert len(identities(shard.paths.output)) == 7


def test_a_line_that_cannot_be_read_is_no_result_where_a_run_was_gone_on_with_all_the_same(shard):
    with serving() as stub:
        asyncio.run(shard.collected(stub, planned(2)))
        with shard.paths.output.open("r+b") as file:
            file.write(b"garbage")
        results = resumed(shard, stub, allow_unsafe_resume=True)
    assert sorted(identity(row)[0] for row in results) == [0, 1]
