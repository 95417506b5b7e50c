import asyncio
import threading
from typing import Any

import aiohttp
import pytest
from fastapi import HTTPException, Request

from rollbook import (
    BaseResponsesAPIModelConfig,
    BaseServerConfig,
    NeMoGymChatCompletion,
    NeMoGymChatCompletionCreateParamsNonStreaming,
    NeMoGymResponse,
    NeMoGymResponseCreateParamsNonStreaming,
    ServerClient,
    SimpleResponsesAPIModel,
)
from unit.servers_models.serving import call, events, post, serving

FREED_WITHIN_SECONDS = 60.0
TEXT = {"type": "output_text", "text": "hello", "annotations": []}
MESSAGE = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [TEXT]}
THOUGHT = {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "hm"}]}
CALL = {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "ns__look_up", "arguments": '{"a":1}'}
USAGE = {
    "input_tokens": 7,
    "input_tokens_details": {"cached_tokens": 2},
    "output_tokens": 3,
    "output_tokens_details": {"reasoning_tokens": 1},
    "total_tokens": 10,
}


class ScriptedModel(SimpleResponsesAPIModel):
    """Answers as its `metadata` or its last message tells it, and keeps what it was asked."""

    asked: list[Any] = []  # noqa: RUF012  pydantic copies it
    begun: Any = None
    freed: Any = None

    async def wait(self) -> None:
        self.begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.freed.set()

    async def responses(self, request: Request, body: NeMoGymResponseCreateParamsNonStreaming) -> NeMoGymResponse:
        self.asked.append(body)
        wish = (body.metadata or {}).get("wish")
        if wish == "break":
            raise RuntimeError("secret inner address")
        if wish == "wait":
            await self.wait()
        if wish == "refuse":
            raise HTTPException(413, "too long")
        items = [THOUGHT, MESSAGE, CALL] if body.tools else [MESSAGE]
        details = {"status": "incomplete", "incomplete_details": {"reason": wish}} if wish else {"status": "completed"}
        frame = {"id": "resp_1", "created_at": 5, "model": "m", "object": "response", "usage": USAGE}
        return NeMoGymResponse.model_validate({**frame, **details, "output": items})

    async def chat_completions(self, body: NeMoGymChatCompletionCreateParamsNonStreaming) -> dict:
        self.asked.append(body)
        if body.user == "break":
            raise RuntimeError("secret inner address")
        function = {"name": "f", "arguments": "{}"}
        message = {
            "role": "assistant",
            "content": "hello",
            "tool_calls": [{"id": "c1", "type": "function", "function": function}],
        }
        choice = {"index": 0, "finish_reason": "tool_calls", "message": message}
        usage = {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}
        return {"id": "chat-1", "created": 5, "model": "m", "choices": [choice], "usage": usage}


def model_server():
    config = BaseResponsesAPIModelConfig(host="127.0.0.1", port=1, entrypoint="app.py", name="policy_model")
    client = ServerClient(BaseServerConfig(host="127.0.0.1", port=1), {})
    return ScriptedModel(config=config, server_client=client, begun=threading.Event(), freed=threading.Event())


@pytest.fixture(scope="module")
def served():
    server = model_server()
    with serving(server.build_app()) as url:
        yield server, url


@pytest.fixture
def url(served):
    served[0].asked.clear()
    return served[1]


def names(text):
    return [name for name, _ in events(text)]


def test_a_response_comes_back_with_the_fields_that_it_has(url):
    reply = post(f"{url}/v1/responses", {"input": "q"})
    assert (reply.status, reply.json()["output"], reply.json()["usage"]) == (200, [MESSAGE], USAGE)
    assert "native_finish_reason" not in reply.json()


@pytest.mark.parametrize("prefix", ["/ng-rollout/3-0-a1", "/ng-rollout/3-0-a1/training-token-capture"])
@pytest.mark.parametrize("path", ["/v1/responses", "/v1/chat/completions", "/v1/messages"])
def test_every_dialect_is_reachable_behind_a_rollout_prefix(url, prefix, path):
    body = {"input": "q"} if path == "/v1/responses" else {"messages": [{"role": "user", "content": "q"}]}
    assert post(url + prefix + path, body).status == 200


def test_a_chat_method_that_answers_a_plain_object_is_validated(url):
    reply = post(f"{url}/v1/chat/completions", {"messages": [{"role": "user", "content": "q"}]})
    assert NeMoGymChatCompletion.model_validate(reply.json()).choices[0].message.content == "hello"


@pytest.mark.parametrize(
    ("path", "body", "where"),
    [
        ("/v1/responses", {"input": "q", "temprature": 1}, ["body", "temprature"]),
        ("/v1/responses", {"input": "q", "temprature": 1, "stream": True}, ["body", "temprature"]),
        ("/v1/responses", [], ["body"]),
        ("/v1/chat/completions", {"messages": [], "top_k": 1}, ["body", "top_k"]),
        ("/v1/chat/completions", {"messages": [], "stream": "false"}, ["body", "stream"]),
        ("/v1/chat/completions", {"messages": [], "stream": 1}, ["body", "stream"]),
        ("/v1/messages", {"messages": [], "zork": 1}, ["body", "zork"]),
    ],
)
def test_a_body_that_does_not_validate_is_answered_422_before_the_model_is_asked(served, url, path, body, where):
    reply = post(url + path, body)
    assert (reply.status, reply.json()["detail"][0]["loc"], served[0].asked) == (422, where, [])


def test_a_body_that_is_no_json_is_answered_422(url):
    async def send():
        async with aiohttp.ClientSession() as session, session.post(f"{url}/v1/responses", data=b"{cut") as reply:
            return reply.status

    assert asyncio.run(send()) == 422


def test_a_failure_without_streaming_is_a_500_with_a_json_string(url):
    reply = post(f"{url}/v1/responses", {"input": "q", "metadata": {"wish": "break"}})
    assert (reply.status, reply.json()) == (500, "RuntimeError('secret inner address')")


def test_a_streamed_response_is_replayed_as_events_in_order(url):
    tool = {"type": "function", "name": "look_up", "parameters": {}}
    body = {"input": "q", "stream": 1, "tools": [{"type": "namespace", "name": "ns", "tools": [tool]}]}
    reply = post(f"{url}/v1/responses", body)
    found = events(reply.text)
    assert [name for name, _ in found] == [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.reasoning_summary_part.added",
        "response.reasoning_summary_text.delta",
        "response.reasoning_summary_text.done",
        "response.reasoning_summary_part.done",
        "response.output_item.done",
        "response.output_item.added",
        "response.content_part.added",
        "response.output_text.delta",
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.output_item.added",
        "response.function_call_arguments.delta",
        "response.function_call_arguments.done",
        "response.output_item.done",
        "response.completed",
    ]
    assert [data["sequence_number"] for _, data in found] == list(range(len(found)))
    assert all(name == data["type"] for name, data in found)
    assert (reply.headers["cache-control"], reply.headers["x-accel-buffering"]) == ("no-cache", "no")
    final = found[-1][1]["response"]
    assert (final["output"][1], final["usage"]) == (MESSAGE, USAGE)
    assert (final["output"][2]["namespace"], final["output"][2]["name"]) == ("ns", "look_up")


def test_the_streaming_dialect_is_made_plain_before_it_is_validated(served, url):
    tool = {"type": "function", "name": "late", "parameters": {}}
    earlier = {"type": "function_call", "call_id": "c0", "namespace": "ns", "name": "look_up", "arguments": "{}"}
    hoisted = {"type": "additional_tools", "role": "developer", "tools": [tool]}
    kept = {"input": [{"role": "user", "content": "q"}, earlier, hoisted], "stream": True}
    post(f"{url}/v1/responses", {**kept, "store": False, "include": [], "client_metadata": {}, "stream_options": {}})
    asked = served[0].asked[0]
    assert [item.type for item in asked.input] == ["message", "function_call"]
    assert (asked.input[1].name, asked.input[1].namespace, asked.tools[0]["name"]) == ("ns__look_up", None, "late")
    assert asked.store is None


def test_a_response_cut_short_ends_in_its_own_event(url):
    body = {"input": "q", "stream": True, "metadata": {"wish": "max_output_tokens"}}
    name, data = events(post(f"{url}/v1/responses", body).text)[-1]
    assert (name, data["response"]["incomplete_details"]) == ("response.incomplete", {"reason": "max_output_tokens"})


@pytest.mark.parametrize(
    ("wish", "kind", "message"),
    [
        ("break", "server_error", "HTTP 500: Model request failed"),
        ("refuse", "invalid_request_error", "HTTP 413: too long"),
    ],
)
def test_a_failure_of_a_streamed_response_is_its_last_event(url, wish, kind, message):
    reply = post(f"{url}/v1/responses", {"input": "q", "stream": True, "metadata": {"wish": wish}})
    name, data = events(reply.text)[-1]
    assert (reply.status, name) == (200, "response.failed")
    assert data["response"]["error"] == {"code": kind, "message": message}
    assert "secret" not in reply.text


@pytest.mark.parametrize("with_usage", [True, False])
def test_a_streamed_completion_is_replayed_as_chunks(url, with_usage):
    options = {"stream_options": {"include_usage": True}} if with_usage else {}
    body = {"messages": [{"role": "user", "content": "q"}], "stream": True, **options}
    found = [data for _, data in events(post(f"{url}/v1/chat/completions", body).text)]
    assert found[-1] == "[DONE]"
    chunks = found[:-1]
    assert {chunk["object"] for chunk in chunks} == {"chat.completion.chunk"}
    deltas = [choice["delta"] for chunk in chunks for choice in chunk["choices"]]
    assert deltas[0] == {"role": "assistant", "content": ""}
    assert "".join(delta.get("content") or "" for delta in deltas) == "hello"
    calls = [made for delta in deltas for made in delta.get("tool_calls", [])]
    assert (calls[0]["index"], calls[0]["id"], calls[0]["function"]["name"]) == (0, "c1", "f")
    reasons = [choice["finish_reason"] for chunk in chunks for choice in chunk["choices"]]
    assert reasons == [None] * (len(reasons) - 1) + ["tool_calls"]
    assert ("usage" in chunks[-1] and chunks[-1]["usage"]["total_tokens"] == 3) is with_usage


def test_a_streamed_completion_that_fails_early_keeps_its_status(url):
    body = {"messages": [{"role": "user", "content": "q"}], "stream": True, "user": "break"}
    reply = post(f"{url}/v1/chat/completions", body)
    assert (reply.status, reply.json()) == (500, "RuntimeError('secret inner address')")


def test_a_message_request_is_a_response_request(served, url):
    body = {
        "model": "m",
        "max_tokens": 9,
        "system": [{"type": "text", "text": "be brief"}],
        "thinking": {"type": "enabled", "budget_tokens": 5},
        "tools": [{"name": "ns__look_up", "description": "d", "input_schema": {"type": "object"}}],
        "tool_choice": {"type": "any", "disable_parallel_tool_use": True},
        "messages": [
            {"role": "user", "content": "q"},
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "hm", "signature": "s"},
                    {"type": "text", "text": "let me see"},
                    {"type": "tool_use", "id": "c0", "name": "ns__look_up", "input": {"a": 1}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "c0", "content": [{"type": "text", "text": "teal"}]},
                    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}},
                    {"type": "text", "text": "and?"},
                ],
            },
        ],
    }
    reply = post(f"{url}/v1/messages", body).json()
    asked = served[0].asked[0]
    kinds = ["message", "reasoning", "message", "function_call", "function_call_output", "message"]
    assert [item.type for item in asked.input] == kinds
    assert (asked.instructions, asked.max_output_tokens, asked.tool_choice) == ("be brief", 9, "required")
    assert (asked.parallel_tool_calls, asked.tools[0]["parameters"]) == (False, {"type": "object"})
    assert asked.input[1].encrypted_content == "s"
    assert asked.input[3].arguments == '{"a":1}'
    assert asked.input[5].content[0].image_url == "data:image/png;base64,AA=="
    assert reply["content"] == [
        {"type": "thinking", "thinking": "hm", "signature": ""},
        {"type": "text", "text": "hello"},
        {"type": "tool_use", "id": "c1", "name": "ns__look_up", "input": {"a": 1}},
    ]
    assert (reply["stop_reason"], reply["type"], reply["role"]) == ("tool_use", "message", "assistant")
    assert reply["usage"] == {"input_tokens": 5, "cache_read_input_tokens": 2, "output_tokens": 3}


def test_a_streamed_message_is_replayed_as_events_in_order(url):
    tools = [{"name": "ns__look_up", "input_schema": {"type": "object"}}]
    body = {"max_tokens": 9, "tools": tools, "stream": True, "messages": [{"role": "user", "content": "q"}]}
    found = events(post(f"{url}/v1/messages", body).text)
    block = ["content_block_start", "content_block_delta", "content_block_stop"]
    assert [name for name, _ in found] == ["message_start", *block * 3, "message_delta", "message_stop"]
    deltas = [data["delta"] for name, data in found if name == "content_block_delta"]
    assert [delta["type"] for delta in deltas] == ["thinking_delta", "text_delta", "input_json_delta"]
    assert deltas[2]["partial_json"] == '{"a":1}'
    assert found[-2][1]["delta"]["stop_reason"] == "tool_use"


@pytest.mark.parametrize("key", ["top_k", "stop_sequences"])
def test_what_a_response_request_cannot_say_is_refused_by_name(url, key):
    value = {"top_k": 4, "stop_sequences": ["x"]}[key]
    reply = post(f"{url}/v1/messages", {"messages": [{"role": "user", "content": "q"}], key: value})
    assert reply.status == 500
    assert key in reply.json()


async def test_a_session_cookie_comes_with_every_reply(url):
    reply = await call("POST", f"{url}/v1/responses", {"input": "q"})
    assert reply.headers["set-cookie"].startswith("ScriptedModel___policy_model=")


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("path", ["/v1/responses", "/ng-rollout/3-0/v1/responses"])
async def test_a_client_that_goes_away_frees_the_model(served, url, path, stream):
    server, _ = served
    server.begun.clear()
    server.freed.clear()
    asking = asyncio.ensure_future(
        call("POST", url + path, {"input": "q", "metadata": {"wish": "wait"}, **({"stream": True} if stream else {})})
    )
    assert await asyncio.to_thread(server.begun.wait, FREED_WITHIN_SECONDS)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert await asyncio.to_thread(server.freed.wait, FREED_WITHIN_SECONDS)
