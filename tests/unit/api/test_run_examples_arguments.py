"""Arguments of a direct call: refused by name before anything is sent, and what is reused between calls."""

import asyncio
import logging

import pytest
from omegaconf import OmegaConf

import rollbook
from rollbook.api.direct_call import Pacing
from rollbook.api.direct_errors import DirectCallError
from rollbook.api.rollout_collection import RolloutCollectionHelper
from rollbook.config.types import BaseServerConfig
from rollbook.errors import ConfigError, HeadServerUnreachableError
from stub import ENVIRONMENT, adding, serving
from unit.api.direct_calls import Call, rows

NOBODY = BaseServerConfig(host="127.0.0.1", port=9)
RAISED = (
    "ShardTakenOverError",
    "RunError",
    "DirectCallError",
    "UnroutedRunError",
    "NothingProducedError",
    "ConfigError",
    "InputError",
    "AgentWithoutEnvironmentServerError",
    "AmbiguousEnvironmentServerError",
    "ConfigPathNotFoundError",
    "LedgerError",
    "HeadServerUnreachableError",
    "InvalidRolloutResult",
    "StaleRolloutResult",
)


@pytest.fixture
def stub():
    with serving() as stub:
        yield stub


def head_of(stub):
    return BaseServerConfig(host="127.0.0.1", port=stub.port)


async def fetched(results):
    return [await awaitable for awaitable in results]


@pytest.mark.parametrize("name", RAISED)
def test_what_a_trainer_is_raised_can_be_caught_by_a_public_name(name):
    assert issubclass(getattr(rollbook, name), rollbook.RollbookError)
    assert name in rollbook.__all__


@pytest.mark.parametrize("semaphore", [4, "4", asyncio.Semaphore])
def test_a_semaphore_that_nobody_can_hold_is_refused_when_the_call_is_made(semaphore):
    with pytest.raises(DirectCallError, match=r"semaphore must be .*asyncio.Semaphore"):
        RolloutCollectionHelper().run_examples([], NOBODY, semaphore)


@pytest.mark.parametrize("name", ["dispatch_budget_s", "drain_margin_s"])
@pytest.mark.parametrize("seconds", ["5", True, [1]])
def test_a_time_that_is_no_number_is_refused_by_name(name, seconds):
    with pytest.raises(DirectCallError, match=name):
        RolloutCollectionHelper().run_examples([], NOBODY, **{name: seconds})


@pytest.mark.parametrize("record", [{}, {"enrich_results": True}])
def test_captures_are_not_deleted_that_nobody_keeps(record):
    with pytest.raises(DirectCallError, match="delete_model_call_capture needs include_model_call_payloads"):
        RolloutCollectionHelper().run_examples(
            [], NOBODY, delete_model_call_capture=True, include_model_call_payloads=False, **record
        )


@pytest.mark.parametrize("head", [{"host": "127.0.0.1"}, {"host": "h", "port": "x"}, 8000, "127.0.0.1:8000", []])
def test_a_head_that_says_no_host_and_port_is_refused_by_name(head):
    with pytest.raises(ConfigError, match=r"head_server_config must be .*found"):
        RolloutCollectionHelper().run_examples([], head)


@pytest.mark.parametrize("make", [dict, OmegaConf.create])
async def test_a_head_may_be_a_mapping(stub, make):
    head = make({"host": "127.0.0.1", "port": stub.port})
    helper = RolloutCollectionHelper(reuse_server_client=True)
    assert len(await fetched(helper.run_examples(adding(1), head))) == 1
    assert len(await fetched(helper.run_outcomes(rows(1), head))) == 1


def test_a_head_that_does_not_answer_names_the_argument():
    with pytest.raises(HeadServerUnreachableError, match="head_server_config"):
        RolloutCollectionHelper().run_examples([], NOBODY)


@pytest.mark.parametrize(
    ("pacing", "is_told"),
    [
        (Pacing(budget=5), True),
        (Pacing(budget=0), False),
        (Pacing(), False),
        (Pacing(asyncio.Semaphore(1), budget=5), False),
        (Pacing(max_resident_tasks=1, budget=5), False),
    ],
)
async def test_a_budget_that_refuses_nothing_is_told(caplog, pacing, is_told):
    with caplog.at_level(logging.WARNING):
        await Call(pacing=pacing).all()
    assert ("dispatch_budget_s=5 refuses nothing" in caplog.text) is is_told


async def test_a_deployment_is_looked_through_once_by_who_reuses_its_client(stub):
    helper, looked_up = RolloutCollectionHelper(reuse_server_client=True), []
    for _ in range(2):
        await fetched(helper.run_examples(adding(2), head_of(stub)))
        looked_up.append(helper._directory)
    assert looked_up[0] is looked_up[1] is not None
    assert len(looked_up[0]._destinations) == 1


async def test_a_name_that_leads_nowhere_is_told_each_time_and_then_forgotten(stub):
    helper = RolloutCollectionHelper(reuse_server_client=True)
    for _ in range(2):
        with pytest.raises(ConfigError, match="nobody_here"):
            helper.run_examples([row | {"agent_ref": {"name": "nobody_here"}} for row in adding(1)], head_of(stub))
    assert len(await fetched(helper.run_examples(adding(1), head_of(stub)))) == 1


async def test_an_enriched_result_says_how_long_its_rollout_took_and_a_plain_one_does_not(stub):
    helper = RolloutCollectionHelper(reuse_server_client=True)
    ((_, enriched),) = await fetched(helper.run_examples(rows(1), head_of(stub), enrich_results=True))
    ((_, plain),) = await fetched(helper.run_examples(rows(1), head_of(stub)))
    assert [*enriched["ng_perf"]] == ["total_latency_ms"]
    assert enriched["ng_perf"]["total_latency_ms"] > 0
    assert "ng_perf" not in plain


def test_a_tracker_that_takes_nothing_down_is_refused_when_the_call_is_made():
    with pytest.raises(DirectCallError, match=r"latency_tracker must be a DispatchLatencyTracker, or None; found 5"):
        RolloutCollectionHelper().run_examples([], NOBODY, latency_tracker=5)


FLAGS = [
    "route_failures_to_sidecar",
    "retry_requests",
    "enrich_results",
    "include_model_call_payloads",
    "delete_model_call_capture",
    "record_omitted_rollouts",
]


@pytest.mark.parametrize("name", FLAGS)
@pytest.mark.parametrize("value", ["false", "no", 0, 3, None])
def test_a_switch_that_is_neither_true_nor_false_is_refused_by_name(name, value):
    with pytest.raises(DirectCallError, match=rf"^{name} must be True or False; found {value!r}$"):
        RolloutCollectionHelper().run_examples([], NOBODY, **{name: value})


@pytest.mark.parametrize("name", [5, "", b"server", [ENVIRONMENT]])
def test_a_server_that_is_no_name_is_refused_by_name(name):
    with pytest.raises(DirectCallError, match=r"environment_server_name must be the name of a server, or None; found"):
        RolloutCollectionHelper().run_examples(rows(1), NOBODY, environment_server_name=name)


@pytest.mark.parametrize("folder", ["", 5, b"out"])
def test_a_folder_that_is_none_is_refused_by_name(folder):
    with pytest.raises(DirectCallError, match=r"record_output_dir must be a path; found"):
        RolloutCollectionHelper().run_examples(rows(1), NOBODY, record_output_dir=folder, record_shard="s")


@pytest.mark.parametrize("run_id", ["", 5, b"run", ["run"]])
def test_a_run_id_that_is_no_text_is_refused_by_name(run_id):
    with pytest.raises(DirectCallError, match=r"run_id must be text, or None for a new one; found"):
        RolloutCollectionHelper().run_outcomes(rows(1), NOBODY, run_id=run_id)


@pytest.mark.parametrize("examples", [None, 5, rows(1)[0], "rows.jsonl", b"{}"])
@pytest.mark.parametrize("call", ["run_examples", "run_outcomes", "preprocess_examples"])
def test_what_holds_no_rows_is_refused_by_name(call, examples):
    helper = RolloutCollectionHelper()
    more = () if call == "preprocess_examples" else (NOBODY,)
    with pytest.raises(ConfigError, match=r"^examples must be rows, for example a list of mappings; found"):
        getattr(helper, call)(examples, *more)


def test_a_switch_of_the_class_itself_is_refused_alike():
    with pytest.raises(DirectCallError, match=r"reuse_server_client must be True or False; found 'yes'"):
        RolloutCollectionHelper(reuse_server_client="yes")
