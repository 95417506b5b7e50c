"""`run_examples` against a server on loopback."""

import asyncio
import copy

import pytest
from aiohttp import web
from omegaconf import OmegaConf

from rollbook.api.direct_errors import DirectCallError, InvalidRolloutResult, StaleRolloutResult
from rollbook.api.rollout_collection import RolloutCollectionHelper
from rollbook.config import parser
from rollbook.config.types import BaseServerConfig
from rollbook.dispatch.completion_budget import DispatchLatencyTracker
from rollbook.errors import ConfigError, HeadServerUnreachableError, InputError
from rollbook.records.failure_report import FAILURE_REPORT_HEADER, FailureEvent, FailureReport, header_of
from rollbook.records.rollout_failure import RolloutFailure
from stub import AGENT, ENVIRONMENT, adding, serving


@pytest.fixture
def stub():
    with serving() as stub:
        yield stub


def head_of(stub):
    return BaseServerConfig(host="127.0.0.1", port=stub.port)


def planned(count, **options):
    return RolloutCollectionHelper().preprocess_examples(adding(count), **options)


def run(stub, examples, *more, **options):
    return RolloutCollectionHelper().run_examples(examples, head_of(stub), *more, **options)


async def fetched(results):
    return [await awaitable for awaitable in results]


def failing(status):
    return lambda row: web.Response(status=status, text="broke") if row["_ng_task_index"] == 1 else None


@pytest.mark.parametrize("limit", [None, 1, 2])
async def test_each_row_comes_back_with_its_reply_and_nothing_else(stub, limit):
    examples = planned(3, num_repeats=2)
    before = copy.deepcopy(examples)
    results = await fetched(run(stub, examples, max_resident_tasks=limit))
    assert all(result == row | {"reward": 1.0, "response": {"output": []}} for row, result in results)
    assert sorted(row["_ng_task_index"] for row, _ in results) == [0, 0, 1, 1, 2, 2]
    assert examples == before
    assert all(row is not example for (row, _), example in zip(results, examples, strict=True))


async def test_rows_without_numbers_are_sent_as_they_are(stub):
    await fetched(run(stub, adding(2)))
    assert sorted(stub.requests, key=str) == sorted(adding(2), key=str)


def test_a_call_may_be_made_before_there_is_a_loop(stub):
    results = run(stub, planned(2))
    assert len(asyncio.run(fetched(results))) == 2


async def test_nothing_is_sent_before_the_first_awaitable_is_used(stub):
    results = run(stub, planned(2))
    await results.aclose()
    bounded = run(stub, planned(2), max_resident_tasks=1)
    list(bounded)
    await bounded.aclose()
    assert stub.requests == []


async def test_rc_31_a_failed_run_is_raised_by_its_own_awaitable_alone(stub):
    stub.script = failing(500)
    outcomes = [(await asyncio.gather(one, return_exceptions=True))[0] for one in run(stub, planned(20))]
    errors = [outcome for outcome in outcomes if isinstance(outcome, Exception)]
    assert [(error.status, error.response_content) for error in errors] == [(500, b"broke")]
    assert len(outcomes) == 20


async def test_a_failed_run_is_a_row_with_routing_on(stub):
    stub.script = failing(503)
    results = dict(_by_task(await fetched(run(stub, planned(3), route_failures_to_sidecar=True))))
    failed = results.pop(1)
    assert (failed["_ng_failure_class"], failed["_ng_failure_http_status"]) == ("agent_request_failed", 503)
    assert failed["_ng_failure_response_body"] == "broke"
    assert {result["reward"] for result in results.values()} == {1.0}


def _by_task(results):
    return [(row["_ng_task_index"], result) for row, result in results]


async def test_a_task_source_is_resolved_against_the_heads_configuration(stub):
    served = stub.config()
    served["adding"] = {"resources_servers": {"adder": {"entrypoint": "app.py"}}}
    ref = {"type": "resources_servers", "name": "adding"}
    served[AGENT]["responses_api_agents"]["simple_agent"]["resources_server"] = ref
    stub.config = lambda: served
    examples = [{"responses_create_params": {"input": "add"}, "task_source": "adding"}]
    ((row, _),) = await fetched(run(stub, examples))
    assert row["agent_ref"] == stub.requests[0]["agent_ref"] == {"name": AGENT}
    assert "agent_ref" not in examples[0]


async def test_rows_that_lead_nowhere_are_refused_together_and_none_is_sent(stub):
    rows = [
        *adding(1),
        {"agent_ref": {"name": "nobody"}},
        {"task_source": "nothing"},
        {"agent_ref": {"name": "adderr"}},
    ]
    with pytest.raises(InputError) as caught:
        run(stub, rows)
    assert all(name in str(caught.value) for name in ("`nobody`", "`nothing`", "`adderr`"))
    assert isinstance(caught.value, ValueError)
    assert stub.requests == []


async def test_a_row_that_names_nobody_goes_to_the_only_agent(stub):
    ((row, _),) = await fetched(run(stub, [{"responses_create_params": {"input": "add"}}]))
    assert row["agent_ref"] == {"name": AGENT}


@pytest.mark.parametrize(
    ("example", "said"),
    [
        ({"agent_ref": {"name": AGENT}, "score": float("nan")}, "row 0: score: nan is no JSON number"),
        ([], "row 0: expected a mapping"),
        ({"agent_ref": {"name": AGENT}, "_ng_rollout_id": "a b"}, "row 0: rollout id 'a b'"),
        ({"task_source": 7}, "row 0: `task_source` must be text"),
        ({"task_id": {"taskset": "t", "task_id": "x"}, "task_input": {}}, "row 0: it names no rollout"),
        (
            {"task_id": {"taskset": "t", "task_id": "x"}, "task_input": {}, "_ng_rollout_id": "one"},
            r"no environment server for taskset 't': row 0",
        ),
    ],
)
async def test_a_row_that_cannot_be_sent_is_refused_by_its_number(stub, example, said):
    with pytest.raises(InputError, match=said):
        run(stub, [example])


async def test_a_server_that_is_named_runs_every_row_and_stamps_copies(stub):
    examples = [{"responses_create_params": {"input": "add"}}]
    ((row, _),) = await fetched(run(stub, examples, environment_server_name=ENVIRONMENT))
    assert (row["_ng_environment_server"], row["agent_ref"]) == (ENVIRONMENT, {"name": AGENT})
    assert examples == [{"responses_create_params": {"input": "add"}}]
    with pytest.raises(InputError, match="there is no environment server `elsewhere`"):
        run(stub, examples, environment_server_name="elsewhere")


async def test_an_episode_task_is_sent_as_an_episode_of_its_attempt(stub):
    stub.script = lambda body: web.json_response(body | {"result": {"reward": 1.0}, "task_id": body["task"]["task_id"]})
    row = {
        "task_id": {"taskset": "t", "task_id": "x"},
        "task_input": {"input": "add"},
        "_ng_task_index": 3,
        "_ng_rollout_index": 1,
        "_ng_attempt_index": 2,
    }
    await fetched(run(stub, [row], environment_server_name=ENVIRONMENT))
    assert stub.requests == [
        {
            "episode_id": {"rollout_id": "3-1", "attempt": 2},
            "task": {"task_id": {"taskset": "t", "task_id": "x"}, "task_input": {"input": "add"}},
        }
    ]


def episode_row(**more):
    return {"task_id": {"taskset": "t", "task_id": "x"}, "task_input": {}, "_ng_rollout_id": "e"} | more


@pytest.mark.parametrize("attempt", [True, -1, "1", 1.5])
async def test_an_episode_task_whose_attempt_is_no_number_is_refused_before_anything_is_sent(stub, attempt):
    with pytest.raises(InputError, match="row 1: `_ng_attempt_index` must be a whole number from 0 on; found"):
        run(stub, [episode_row(), episode_row(_ng_attempt_index=attempt)], environment_server_name=ENVIRONMENT)
    assert stub.requests == []


@pytest.mark.parametrize("reply", [{"reward": 1.0}, {"episode_id": {}, "task_id": {}, "result": {"_ng_perf": 1}}])
async def test_what_an_episode_server_replied_is_looked_at_only_where_results_are_enriched(stub, reply):
    stub.script = lambda _body: web.json_response(reply)
    options = {"environment_server_name": ENVIRONMENT, "route_failures_to_sidecar": True}
    ((_, plain),) = await fetched(run(stub, [episode_row()], **options))
    assert plain == reply
    ((_, typed),) = await fetched(run(stub, [episode_row()], enrich_results=True, **options))
    assert isinstance(typed, RolloutFailure)
    with pytest.raises(InvalidRolloutResult, match="protocol violation"):
        await fetched(run(stub, [episode_row()], environment_server_name=ENVIRONMENT, enrich_results=True))


async def test_a_reply_to_another_attempt_is_no_reply_to_this_one(stub):
    stub.script = lambda body: web.json_response(
        {"episode_id": {"rollout_id": "e", "attempt": 0}, "task_id": body["task"]["task_id"], "result": {"reward": 1.0}}
    )
    with pytest.raises(StaleRolloutResult, match="attempt 0"):
        await fetched(run(stub, [episode_row(_ng_attempt_index=1)], environment_server_name=ENVIRONMENT))


async def test_a_failed_run_tells_the_report_that_came_with_its_reply(stub):
    report = FailureReport("m-1", {"m-1": FailureEvent("model", "provider_unavailable", http_status=503)})
    headers = {FAILURE_REPORT_HEADER: header_of(report)}
    stub.script = lambda _row: web.Response(status=500, headers=headers)
    ((_, failed),) = await fetched(run(stub, planned(1), route_failures_to_sidecar=True))
    assert failed["failure_kind"] == "provider_unavailable"
    assert failed["_ng_failure_events"]["m-1"]["boundary"] == "model"


async def test_enriched_rows_name_this_calls_run_and_their_results_carry_the_row_s_identity(stub):
    stub.script = lambda _row: web.json_response({"reward": 0.5})
    results = await fetched(run(stub, planned(2, num_repeats=2), enrich_results=True))
    runs = {row["_ng_run_id"] for row, _ in results} | {request["_ng_run_id"] for request in stub.requests}
    assert len(runs) == 1
    for row, result in results:
        named = {key: row[key] for key in ("_ng_task_index", "_ng_rollout_index", "_ng_run_id")}
        assert result == {"reward": 0.5, "ng_perf": result["ng_perf"]} | named


async def test_enriched_failures_are_typed_and_a_reply_that_is_no_result_is_one(stub):
    replies = {0: {"reward": "high"}, 1: {"_ng_failure_class": "judge_failed", "response": {}}, 2: {"reward": 1.0}}
    stub.script = lambda row: web.json_response(replies[row["_ng_task_index"]])
    options = {"enrich_results": True, "route_failures_to_sidecar": True}
    results = dict(_by_task(await fetched(run(stub, planned(3), **options))))
    assert isinstance(results[0], RolloutFailure)
    assert (results[0].delivery, results[0].failure.stage) == ("delivered", "verification")
    assert results[1]["_ng_failure_class"] == "judge_failed"
    assert results[2]["reward"] == 1.0


async def test_rows_that_name_no_rollout_are_not_enriched(stub):
    stub.script = lambda _row: web.Response(status=500)
    ((row, failed),) = await fetched(run(stub, adding(1), enrich_results=True, route_failures_to_sidecar=True))
    assert failed["_ng_failure_class"] == "agent_run_error"
    assert "_ng_run_id" not in row


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"dispatch_budget_s": 0}, "dispatch budget exhausted"),
        ({"dispatch_budget_s": 3, "drain_margin_s": 10}, "3s left in dispatch budget, below the 10s drain margin"),
    ],
)
async def test_v4_rows_that_a_budget_never_started_say_so_and_are_not_sent(stub, options, said):
    tracker = DispatchLatencyTracker()
    results = await fetched(run(stub, planned(2), asyncio.Semaphore(1), latency_tracker=tracker, **options))
    drained = {"_ng_failure_class": "cancelled", "_ng_no_persist": True, "_ng_dispatch_drained": True}
    assert [result for _, result in results] == [drained | {"error_message": f"not dispatched: {said}"}] * 2
    assert (stub.requests, tracker.drained) == ([], 2)


async def test_a_tracker_is_told_of_every_result(stub):
    tracker = DispatchLatencyTracker()
    await fetched(run(stub, planned(3), latency_tracker=tracker))
    await fetched(run(stub, planned(2), latency_tracker=tracker))
    assert (tracker.count, tracker.drained) == (5, 0)


@pytest.mark.parametrize(
    ("option", "error", "said"),
    [
        ({"record_output_dir": "out"}, ConfigError, "record_output_dir"),
        ({"record_shard": "step-1"}, ConfigError, "record_shard"),
        ({"record_omitted_rollouts": True}, ConfigError, "record_omitted_rollouts"),
        ({"max_resident_tasks": 0}, DirectCallError, "max_resident_tasks"),
        ({"dispatch_budget_s": -1.0}, DirectCallError, "dispatch_budget_s"),
        (
            {"enrich_results": True, "include_model_call_payloads": False, "delete_model_call_capture": True},
            DirectCallError,
            "delete_model_call_capture",
        ),
    ],
)
def test_an_argument_that_cannot_be_followed_is_refused_by_name(option, error, said):
    with pytest.raises(error, match=said):
        RolloutCollectionHelper().run_examples([], **option)


def test_a_head_server_that_is_not_there_is_told_at_the_call():
    with serving() as stub:
        gone = head_of(stub)
    with pytest.raises(HeadServerUnreachableError, match=str(gone.port)):
        RolloutCollectionHelper().run_examples(adding(1), gone)


async def test_without_a_head_that_is_named_this_process_s_configuration_says_where_it_is(stub):
    parser.set_global_config_dict(OmegaConf.create({"head_server": {"host": "127.0.0.1", "port": stub.port}}))
    try:
        assert len(await fetched(RolloutCollectionHelper().run_examples(planned(2)))) == 2
    finally:
        parser.forget_global_config_dict()


class Heads:
    """Counts how often the configuration was fetched."""

    def __init__(self, stub):
        self.fetched = 0
        self._config = stub.config
        stub.config = self

    def __call__(self):
        self.fetched += 1
        return self._config()


@pytest.mark.parametrize(("reuse", "fetches"), [(False, 3), (True, 1)])
def test_the_configuration_is_fetched_for_each_call_unless_the_client_is_reused(stub, reuse, fetches):
    heads = Heads(stub)
    collection = RolloutCollectionHelper(reuse_server_client=reuse)
    clients = [collection.setup_server_client(head_of(stub)) for _ in range(3)]
    assert heads.fetched == fetches
    assert (clients[0] is clients[2]) == reuse


def test_a_reused_client_is_of_one_head_whether_it_was_named_or_configured(stub):
    heads = Heads(stub)
    parser.set_global_config_dict(OmegaConf.create({"head_server": {"host": "127.0.0.1", "port": stub.port}}))
    try:
        collection = RolloutCollectionHelper(reuse_server_client=True)
        assert collection.setup_server_client() is collection.setup_server_client(head_of(stub))
        assert heads.fetched == 1
        with serving() as other:
            assert collection.setup_server_client(head_of(other)).head_server_config.port == other.port
    finally:
        parser.forget_global_config_dict()
