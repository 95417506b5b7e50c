"""`run_from_config`: what it takes, settings that were changed after they were made, and what it says on its way."""

import json
import logging

import pytest
from omegaconf import OmegaConf

from rollbook.api.logged import logged
from rollbook.api.rollout_collection import RolloutCollectionHelper
from rollbook.config import parser
from rollbook.config.collection import (
    E2ERolloutCollectionConfig,
    RolloutAggregationConfig,
    RolloutCollectionConfig,
    SharedRolloutCollectionConfig,
)
from rollbook.errors import ConfigError
from rollbook.records.event import RunEnded, RunNoted, RunStalled, Waiting
from rollbook.records.identity import RolloutKey
from stub import AGENT, adding, lines, serving


@pytest.fixture
def stub():
    with serving() as stub:
        parser.set_global_config_dict(OmegaConf.create(stub.config()))
        yield stub
        parser.forget_global_config_dict()


@pytest.fixture
def settings(tmp_path):
    (tmp_path / "in.jsonl").write_bytes(lines(adding(3)))
    output = tmp_path / "out" / "r.jsonl"
    return RolloutCollectionConfig(
        input_jsonl_fpath=str(tmp_path / "in.jsonl"), output_jsonl_fpath=str(output), disable_aggregation=True
    )


def run(config):
    return RolloutCollectionHelper().run_from_config(config)


CHANGES = [
    ({"num_samples_in_parallel": 0}, r"`num_samples_in_parallel` \(--concurrency\)"),
    ({"dispatch_budget_s": 100}, "dispatch_budget_s needs num_samples_in_parallel"),
    ({"num_repeats": 0}, "repeats are whole numbers from 1 on"),
    ({"overwrite": True, "resume_from_cache": True}, "exclude each other"),
    ({"environment_routing_mode": "legacy"}, "needs environment_server_name"),
]


@pytest.mark.parametrize(("changes", "said"), CHANGES)
async def test_settings_that_were_changed_are_held_to_the_rules_that_they_were_made_by(stub, settings, changes, said):
    changed = settings.model_copy()
    for name, value in changes.items():
        setattr(changed, name, value)
    for config in (changed, settings.model_copy(update=changes)):
        with pytest.raises(ConfigError, match=said):
            await run(config)
    assert stub.requests == []


async def test_a_value_that_was_changed_is_brought_to_one_form_and_acted_on(stub, settings):
    settings.num_samples_in_parallel = "2"
    settings.num_repeats = None
    settings.agent_name = AGENT
    results = await run(settings)
    assert [row["agent_ref"] for row in results] == [{"name": AGENT}] * 3
    settings.agent_name = "nobody"
    with pytest.raises(ConfigError, match="nobody"):
        await run(settings.model_copy(update={"overwrite": True}))
    assert len(stub.requests) == 3


@pytest.mark.parametrize(
    "config",
    [
        {"split": "train", "output_jsonl_fpath": "o.jsonl"},
        OmegaConf.create({"split": "train", "output_jsonl_fpath": "o.jsonl"}),
        SharedRolloutCollectionConfig(output_jsonl_fpath="o.jsonl"),
        RolloutAggregationConfig(input_glob="*", output_jsonl_fpath="o.jsonl"),
        RolloutCollectionConfig,
        None,
    ],
)
async def test_what_is_no_settings_of_a_collection_is_refused_by_its_type(stub, config):
    with pytest.raises(ConfigError, match=r"config must be a RolloutCollectionConfig or an E2ERoll.*; found "):
        await run(config)


async def test_settings_of_a_split_are_held_to_their_rules_as_well(stub, tmp_path):
    config = E2ERolloutCollectionConfig(split="train", output_jsonl_fpath=str(tmp_path / "o.jsonl"))
    with pytest.raises(ConfigError, match="example data"):
        await run(config.model_copy(update={"split": "example"}))


async def test_what_a_person_should_know_of_a_run_is_logged(stub, settings, caplog):
    settings.num_repeats = {"_default": 1, "typo": 2}
    with caplog.at_level(logging.WARNING):
        await run(settings)
    said = [record.getMessage() for record in caplog.records if record.name == "rollbook.api.logged"]
    assert said[:2] == [
        "num_repeats lists typo, which no row uses: a typo?",
        "a rollout may take as long as it needs; --timeout S sets a limit",
    ]


def test_a_run_that_stalls_is_logged_and_other_events_are_not(caplog):
    waiting = Waiting(RolloutKey(0, 1), 41.2, "sums", "10.0.0.1:80", "waiting for the reply")
    with caplog.at_level(logging.DEBUG):
        logged(RunStalled(30.4, 7, (waiting,)))
        logged(RunNoted("50 % is 100%s"))
        logged(RunEnded())
    assert [record.getMessage() for record in caplog.records] == [
        "nothing ended for 30 s; 7 in flight, the longest: 0-1 waiting for the reply for 41 s on 10.0.0.1:80 (sums)",
        "50 % is 100%s",
    ]


async def test_parameters_that_were_put_into_the_settings_are_sent(stub, settings):
    settings.responses_create_params["temperature"] = 0.0
    await run(settings)
    assert [sent["responses_create_params"]["temperature"] for sent in stub.requests] == [0.0] * 3


async def test_settings_are_left_as_they_were(stub, settings):
    before = json.dumps(settings.model_dump())
    await run(settings)
    assert json.dumps(settings.model_dump()) == before
