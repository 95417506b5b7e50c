import asyncio

import aiohttp
import pytest

from responses_api_models.simulated_model.app import SimulatedModel, repeat_of
from responses_api_models.simulated_model.chance import Chance
from responses_api_models.simulated_model.settings import FaultSettings, LatencySettings
from responses_api_models.simulated_model.unreliable import Fault, Times, fault_of, latency_of
from rollbook import BaseServerConfig, ConfigError, ServerClient
from rollbook.servers.http.embedded_call import EmbeddedRequest, call_embedded, request_scope
from unit.servers_models.serving import call, serving
from unit.shelf.calling import COMPONENTS, built, example_rows, served

MCQA = str(COMPONENTS / "resources_servers" / "mcqa" / "data" / "example.jsonl")
ROW = example_rows("mcqa")[0]
PROMPT = ROW["responses_create_params"]
TOOL = {"type": "function", "name": "get_weather", "parameters": {"type": "object", "properties": {}}, "strict": True}


def model(**options):
    return built(SimulatedModel, **{"answers_fpath": MCQA} | options)


def text_of(response):
    return response["output"][0]["content"][0]["text"]


async def answers(server, rollout_ids, path="/v1/responses", body=PROMPT):
    return [text_of(await server.ok(path, body, x_rollout_id=rollout_id)) for rollout_id in rollout_ids]


async def test_a_right_answer_is_the_rows_and_usage_is_filled_in():
    async with served(model(policy={"p_correct": 1})) as server:
        reply = await server.ok("/v1/responses", PROMPT)
    assert text_of(reply).endswith(r"\boxed{B}")
    assert reply["usage"]["total_tokens"] == reply["usage"]["input_tokens"] + reply["usage"]["output_tokens"] > 40
    assert reply["model"] == "simulated"


async def test_both_dialects_give_the_same_answer():
    messages = {"messages": PROMPT["input"], "model": "mine"}
    async with served(model()) as server:
        for repeat in range(8):
            rollout_id = f"0-{repeat}"
            chat = await server.ok("/v1/chat/completions", messages, x_rollout_id=rollout_id)
            assert chat["choices"][0]["message"]["content"] == (await answers(server, [rollout_id]))[0]
    assert (chat["model"], chat["choices"][0]["finish_reason"]) == ("mine", "stop")
    assert chat["usage"]["total_tokens"] == chat["usage"]["prompt_tokens"] + chat["usage"]["completion_tokens"]


async def test_the_messages_dialect_gives_the_same_answer():
    body = {"model": "mine", "max_tokens": 99, "messages": PROMPT["input"]}
    async with served(model()) as server:
        reply = await server.ok("/v1/messages", body, x_rollout_id="0-1")
        assert reply["content"][0]["text"] == (await answers(server, ["0-1"]))[0]


async def test_tool_calls_are_made_in_both_dialects():
    chat_tool = {"type": "function", "function": {"name": "get_weather", "parameters": {}}}
    async with served(model(policy={"p_correct": 1})) as server:
        response = await server.ok("/v1/responses", {"input": "Oslo?", "tools": [TOOL]})
        body = {"messages": [{"role": "user", "content": "Oslo?"}], "tools": [chat_tool]}
        chat = await server.ok("/v1/chat/completions", body)
    assert (response["output"][0]["type"], response["output"][0]["arguments"]) == ("function_call", "{}")
    (choice,) = chat["choices"]
    assert choice["message"]["tool_calls"][0]["function"] == {"name": "get_weather", "arguments": "{}"}
    assert (choice["message"]["content"], choice["finish_reason"]) == (None, "tool_calls")


async def test_repeats_differ_and_the_same_repeat_never_does():
    ids = [f"0-{repeat}" for repeat in range(12)]
    async with served(model(policy={"p_correct": 0.5})) as one, served(model(policy={"p_correct": 0.5})) as other:
        first = await answers(one, ids)
        again = await answers(other, reversed(ids))
    assert first == list(reversed(again))
    assert len(set(first)) > 1


async def test_a_retried_attempt_gives_the_same_answer_and_another_seed_another():
    ids = [f"0-{repeat}" for repeat in range(12)]
    async with served(model()) as server, served(model(seed=1)) as reseeded:
        assert await answers(server, ids) == await answers(server, [f"{key}-a3" for key in ids])
        assert await answers(server, ids) != await answers(reseeded, ids)


async def test_the_rollout_may_also_stand_in_the_path():
    async with served(model()) as server:
        for repeat in range(6):
            behind_prefix = await server.ok(f"/ng-rollout/0-{repeat}/v1/responses", PROMPT)
            assert text_of(behind_prefix) == (await answers(server, [f"0-{repeat}"]))[0]


async def test_without_a_rollout_the_requests_of_one_prompt_are_counted():
    async with served(model()) as server, served(model()) as other:
        first = [text_of(await server.ok("/v1/responses", PROMPT)) for _ in range(12)]
        second = [text_of(await other.ok("/v1/responses", PROMPT)) for _ in range(12)]
    assert first == second
    assert len(set(first)) > 1


async def test_without_a_rollout_the_requests_own_seed_tells_repeats_apart():
    async with served(model()) as server:
        seeded = [PROMPT | {"metadata": {"extra_body": f'{{"seed": {seed}}}'}} for seed in [*range(12), *range(12)]]
        texts = [text_of(await server.ok("/v1/responses", body)) for body in seeded]
    assert texts[:12] == texts[12:]
    assert len(set(texts)) > 1


@pytest.mark.parametrize(
    ("rollout_id", "repeat"),
    [("3-0", "0"), ("3-12-a4", "12"), ("mine-7-2", "mine-7-2"), ("mine-a2", "mine"), ("mine", "mine")],
)
def test_a_repeat_is_the_rollouts_and_never_the_attempts(rollout_id, repeat):
    assert repeat_of(rollout_id) == repeat


async def test_rewards_come_at_the_set_rate():
    right = 0
    async with served(model(policy={"p_correct": 0.6})) as server:
        for row in example_rows("mcqa"):
            box = rf"\boxed{{{row['expected_answer']}}}"
            ids = [f"0-{repeat}" for repeat in range(60)]
            texts = await answers(server, ids, body=row["responses_create_params"])
            right += sum(text.endswith(box) for text in texts)
    assert right / 300 == pytest.approx(0.6, abs=0.06)


def test_a_data_set_that_is_named_must_be_there():
    with pytest.raises(ConfigError, match=r"answers_fpath names nowhere\.jsonl"):
        model(answers_fpath=["nowhere.jsonl"]).build_app()


async def test_the_configurations_own_data_sets_are_known():
    data_sets = [{"name": "example", "type": "example", "jsonl_fpath": MCQA}, {"jsonl_fpath": "not/made/yet.jsonl"}]
    configuration = {"mcqa": {"resources_servers": {"mcqa": {"datasets": data_sets}}}, "input_jsonl_fpath": "no.jsonl"}
    client = ServerClient(BaseServerConfig(host="127.0.0.1", port=1), configuration)
    async with served(model(client=client, answers_fpath=None, policy={"p_correct": 1})) as server:
        assert text_of(await server.ok("/v1/responses", PROMPT)).endswith(r"\boxed{B}")


async def test_a_line_that_is_no_json_teaches_nothing(tmp_path, caplog):
    path = tmp_path / "rows.jsonl"
    path.write_text(
        '{"responses_create_params":\n[1]\n\n{"responses_create_params": {"input": "2+2?"}, "answer": "4"}\n'
    )
    async with served(model(answers_fpath=str(path), policy={"p_correct": 1})) as server:
        assert text_of(await server.ok("/v1/responses", {"input": "2+2?"})) == "4"
    assert f"{path}:1 is no JSON" in caplog.text


# Waits and faults.

RATES = {"rate_limited": 0.1, "server_error": 0.1, "stall": 0.05, "drop": 0.05, "truncated": 0.2}


def test_faults_come_at_the_set_rates():
    drawn = [fault_of(FaultSettings(**RATES), Chance(str(number))) for number in range(4000)]
    for fault in Fault:
        assert drawn.count(fault) / 4000 == pytest.approx(RATES.get(fault, 0.5), abs=0.02)


def test_rates_of_more_than_one_whole_are_refused():
    with pytest.raises(ValueError, match=r"add up to 1\.2"):
        FaultSettings(stall=0.6, drop=0.6)


@pytest.mark.parametrize(
    ("distribution", "lowest", "highest"),
    [("constant", 2, 2), ("uniform", 0, 4), ("exponential", 0, 30), ("lognormal", 0.1, 20)],
)
def test_a_latency_has_the_mean_that_was_set(distribution, lowest, highest):
    settings = LatencySettings(distribution=distribution, mean_seconds=2)
    drawn = [latency_of(settings, Chance(str(number))) for number in range(4000)]
    assert sum(drawn) / 4000 == pytest.approx(2, rel=0.05)
    assert lowest <= min(drawn) <= max(drawn) <= highest


def test_no_latency_exceeds_the_longest():
    settings = LatencySettings(distribution="exponential", mean_seconds=2, max_seconds=1)
    assert max(latency_of(settings, Chance(str(number))) for number in range(100)) == 1


def test_only_the_last_keys_are_counted():
    times = Times(remembered=2)
    assert [times.next(key) for key in "aabca"] == [0, 1, 0, 0, 0]


async def test_a_rate_limit_says_when_to_try_again():
    async with served(model(faults={"rate_limited": 1, "retry_after_seconds": 7})) as server:
        reply = await server.post("/v1/responses", PROMPT)
        assert (reply.status, reply.headers["retry-after"]) == (429, "7")
        assert reply.json()["error"]["code"] == "rate_limit_exceeded"
        assert (await server.get("/health")).status == 200


async def test_a_server_error_is_a_500():
    async with served(model(faults={"server_error": 1})) as server:
        assert (await server.post("/v1/chat/completions", {"messages": PROMPT["input"]})).status == 500


async def test_a_truncated_reply_is_half_of_one_and_looks_whole():
    async with served(model()) as whole, served(model(faults={"truncated": 1})) as server:
        reply = await server.post("/v1/responses", PROMPT, x_rollout_id="0-0")
        entire = await whole.post("/v1/responses", PROMPT, x_rollout_id="0-0")
    assert reply.status == 200
    assert reply.body == entire.body[: len(entire.body) // 2]
    assert reply.headers["content-length"] == str(len(reply.body))


async def test_faults_depend_on_attempt_and_sending_and_on_nothing_else():
    async def statuses(server, ids):
        return [(await server.post("/v1/responses", PROMPT, x_rollout_id=key)).status for key in ids]

    ids = [f"0-{repeat}{attempt}" for repeat in range(10) for attempt in ("", "-a1")]
    settings = {"server_error": 0.5}
    async with served(model(faults=settings)) as one, served(model(faults=settings)) as other:
        first, sent_again = await statuses(one, ids), await statuses(one, ids)
        assert first == list(reversed(await statuses(other, ids[::-1])))
    assert sent_again != first
    assert first[::2] != first[1::2]


async def test_a_dropped_reply_breaks_off_embedded_and_over_a_socket():
    faulty = model(faults={"drop": 1})
    async with served(faulty) as server:
        with pytest.raises(aiohttp.ClientPayloadError):
            await server.post("/v1/responses", PROMPT)
    with serving(faulty.build_app()) as url, pytest.raises(aiohttp.ClientError):
        await call("POST", f"{url}/v1/responses", PROMPT)


async def test_a_truncated_reply_is_half_of_one_over_a_socket():
    with serving(model(faults={"truncated": 1}).build_app()) as url:
        reply = await call("POST", f"{url}/v1/responses", PROMPT)
    assert reply.status == 200
    assert reply.text.startswith('{"id":"resp_')
    assert not reply.text.endswith("}")


async def test_a_stalled_request_is_never_answered_and_ends_with_its_caller():
    app = model(faults={"stall": 1}).build_app()
    request = EmbeddedRequest("POST", "http://127.0.0.1:1", "/v1/responses", {}, b"{}")
    handlers = set()
    caller = asyncio.ensure_future(call_embedded(app, request_scope(request, "127.0.0.1", 1, {}), request, handlers))
    done, _ = await asyncio.wait({caller}, timeout=0.2)
    (handler,) = handlers
    caller.cancel()
    await asyncio.wait({caller, handler}, timeout=60)
    assert not done
    assert handler.done()


async def test_a_stalled_request_is_never_answered_over_a_socket():
    with serving(model(faults={"stall": 1}).build_app()) as url:
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=0.3)) as session:
            with pytest.raises(asyncio.TimeoutError):
                await session.post(f"{url}/v1/responses", json=PROMPT)
        assert (await call("GET", f"{url}/health")).status == 200


async def test_a_reply_waits_as_long_as_was_drawn():
    async with served(model(latency={"mean_seconds": 0.05})) as server:
        loop = asyncio.get_running_loop()
        began = loop.time()
        await server.ok("/v1/responses", PROMPT)
        assert loop.time() - began >= 0.05
