"""`run_outcomes`: every expected failure is a record, and nothing is sent twice."""

import asyncio
import copy

import pytest
from aiohttp import web

from rollbook.api.rollout_collection import RolloutCollectionHelper
from rollbook.config.types import BaseServerConfig
from rollbook.errors import ConfigError, InputError
from rollbook.records.rollout_failure import RolloutFailure
from stub import ENVIRONMENT, adding, serving

TASK = {"taskset": "t", "task_id": "x"}


@pytest.fixture
def stub():
    with serving() as stub:
        yield stub


def planned(count, **options):
    return RolloutCollectionHelper().preprocess_examples(adding(count), **options)


async def outcomes(stub, examples, **options):
    head = BaseServerConfig(host="127.0.0.1", port=stub.port)
    results = RolloutCollectionHelper().run_outcomes(examples, head, **options)
    return [await awaitable for awaitable in results]


async def only(stub, **options):
    ((row, outcome),) = await outcomes(stub, planned(1), **options)
    return row, outcome


async def test_a_row_that_ran_comes_back_with_its_reply(stub):
    examples = planned(2)
    before = copy.deepcopy(examples)
    for row, outcome in await outcomes(stub, examples):
        assert outcome == row | {"reward": 1.0, "response": {"output": []}}
    assert examples == before


@pytest.mark.parametrize(
    ("answer", "status", "kind", "delivery"),
    [
        (web.Response(status=500), 500, "ClientResponseError", "delivered"),
        (web.Response(status=503), 503, "ClientResponseError", "possibly_delivered"),
        (web.Response(body=b"<html>"), 200, "JSONDecodeError", "delivered"),
        (web.Response(body=b"[]"), 200, "InvalidRolloutResult", "delivered"),
        (web.json_response({"reward": [1]}), None, None, "delivered"),
    ],
)
async def test_what_is_expected_to_go_wrong_is_a_record(answer, status, kind, delivery):
    with serving(lambda _row: answer) as stub:
        _, outcome = await only(stub, run_id="r")
    assert isinstance(outcome, RolloutFailure)
    assert (outcome.http_status, outcome.exception_type, outcome.delivery) == (status, kind, delivery)
    assert (outcome.run_id, outcome.episode_id.rollout_id, outcome.source) == ("r", "0-0", "collector")


async def test_a_request_that_may_be_lost_is_not_sent_again():
    def drop(_row):
        raise asyncio.CancelledError

    with serving(drop) as stub:
        _, outcome = await only(stub)
        assert len(stub.requests) == 1
    assert outcome.delivery == "possibly_delivered"


async def test_a_failure_that_an_agent_reports_stays_its_reply():
    told = {"_ng_failure_class": "judge_failed", "response": {"output": [1]}}
    with serving(lambda _row: web.json_response(told)) as stub:
        assert (await only(stub))[1] == told


async def test_a_run_id_that_is_given_overrides_the_rows_own(stub):
    examples = [planned(1)[0] | {"_ng_run_id": "old"}]
    ((row, _),) = await outcomes(stub, examples, run_id="new")
    assert row["_ng_run_id"] == stub.requests[0]["_ng_run_id"] == "new"
    assert examples[0]["_ng_run_id"] == "old"


async def test_without_one_rows_keep_their_own_and_the_others_share_a_new_one(stub):
    first, second, third = planned(3)
    results = await outcomes(stub, [first | {"_ng_run_id": "old"}, second, third])
    named = {row["_ng_task_index"]: row["_ng_run_id"] for row, _ in results}
    assert named[0] == "old"
    assert named[1] == named[2] != "old"
    ((again, _),) = await outcomes(stub, [second])
    assert again["_ng_run_id"] != named[1]


async def test_rows_that_name_no_rollout_are_refused_and_none_is_sent(stub):
    with pytest.raises(InputError, match=r"row 0: it names no rollout.*\n.*row 1"):
        await outcomes(stub, adding(2))
    with pytest.raises(ConfigError, match="run_id must be text"):
        await outcomes(stub, planned(1), run_id="")
    assert stub.requests == []


async def test_an_explicit_rollout_id_names_a_rollout(stub):
    stub.script = lambda _row: web.Response(status=500)
    ((_, outcome),) = await outcomes(stub, [adding(1)[0] | {"_ng_rollout_id": "mine", "_ng_attempt_index": 2}])
    assert (outcome.episode_id.rollout_id, outcome.episode_id.attempt) == ("mine", 2)


def episode(**more):
    return [{"task_id": TASK, "task_input": {}, "_ng_rollout_id": "e", "_ng_environment_server": ENVIRONMENT} | more]


@pytest.mark.parametrize(
    ("reply", "source", "reason"),
    [
        ({"failure": {"failure_reason": "no sandbox", "terminal": True, "stage": "seed"}}, "environment", "no sandbox"),
        ({"result": {"reward": 1.0}, "episode_id": {"rollout_id": "other", "attempt": 0}}, None, "another episode"),
        ({"result": {"_ng_run_id": "x"}}, None, "keys of the collector: _ng_run_id"),
        ({}, None, "it has the keys episode_id, task_id"),
    ],
)
async def test_an_episode_that_failed_or_broke_the_protocol_is_a_record(stub, reply, source, reason):
    stub.script = lambda body: web.json_response(
        {"episode_id": body["episode_id"], "task_id": body["task"]["task_id"]} | reply
    )
    ((_, outcome),) = await outcomes(stub, episode())
    assert isinstance(outcome, RolloutFailure)
    assert reason in outcome.failure.failure_reason
    assert outcome.source == source or source is None


async def test_an_episode_that_ran_comes_back_with_its_reply(stub):
    def answer(body):
        return web.json_response(
            {"episode_id": body["episode_id"], "task_id": body["task"]["task_id"], "result": {"reward": 1.0}}
        )

    stub.script = answer
    ((_, outcome),) = await outcomes(stub, episode())
    assert outcome == {"episode_id": {"rollout_id": "e", "attempt": 0}, "task_id": TASK, "result": {"reward": 1.0}}
