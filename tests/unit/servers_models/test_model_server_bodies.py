from typing import Any

import pytest

from rollbook import BaseResponsesAPIModelConfig, BaseServerConfig, ServerClient, SimpleResponsesAPIModel
from rollbook import NeMoGymChatCompletionCreateParamsNonStreaming as ChatParams
from rollbook import NeMoGymResponseCreateParamsNonStreaming as Params
from unit.servers_models.serving import chat, post, serving

HALF_TEXT = "a\ud800b\ud83d\ude00"


class HalfWitted(SimpleResponsesAPIModel):
    """Answers with half of a character, and keeps what it was asked."""

    asked: list[Any] = []  # noqa: RUF012  pydantic copies it

    async def responses(self, body: Params) -> dict:
        self.asked.append(body)
        part = {"type": "output_text", "text": HALF_TEXT, "annotations": []}
        item = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [part]}
        return {"id": "resp_1", "created_at": 5, "model": "m", "object": "response", "output": [item]}

    async def chat_completions(self, body: ChatParams) -> dict:
        self.asked.append(body)
        return chat({"content": HALF_TEXT})


@pytest.fixture(scope="module")
def served():
    config = BaseResponsesAPIModelConfig(host="127.0.0.1", port=1, entrypoint="app.py", name="policy_model")
    client = ServerClient(BaseServerConfig(host="127.0.0.1", port=1), {})
    server = HalfWitted(config=config, server_client=client)
    with serving(server.build_app()) as url:
        yield server, url


@pytest.fixture
def url(served):
    served[0].asked.clear()
    return served[1]


def asked_with(content):
    return {"messages": [{"role": "user", "content": "q"}, {"role": "user", "content": content}]}


CONTENT = "body.messages.1.content"
MALFORMED_MESSAGES = [
    ({"messages": [{"role": "user"}]}, "body.messages.0.content"),
    ({"messages": [5]}, "body.messages.0"),
    (asked_with(5), CONTENT),
    (asked_with(["a"]), CONTENT),
    (asked_with([{"text": "q"}]), CONTENT),
    (asked_with([{"type": ["text"]}]), CONTENT),
    (asked_with([{"type": "text", "text": 5}]), CONTENT),
    (asked_with([{"type": "image", "source": "a"}]), CONTENT),
    (asked_with([{"type": "image", "source": {}}]), CONTENT),
    (asked_with([{"type": "tool_use", "id": "c", "name": "f"}]), CONTENT),
    (asked_with([{"type": "tool_result", "tool_use_id": "c", "content": [5]}]), CONTENT),
    (asked_with("q") | {"system": [{"type": "text"}]}, "body.system"),
    (asked_with("q") | {"tools": [{"name": "f"}]}, "body.tools.0"),
    (asked_with("q") | {"tools": [{"input_schema": {}}]}, "body.tools.0.name"),
    (asked_with("q") | {"tools": [], "tool_choice": {"type": "tool"}}, "body.tool_choice"),
    ({"messages": [{"role": "zork", "content": "q"}]}, "body.input"),
]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("body", "where"), MALFORMED_MESSAGES)
def test_a_malformed_message_is_answered_422_and_the_place_is_said(served, url, body, where, stream):
    reply = post(f"{url}/v1/messages", {**body, "stream": stream} if stream else body)
    assert (reply.status, served[0].asked) == (422, [])
    assert all(".".join(map(str, detail["loc"])).startswith(where) for detail in reply.json()["detail"])


def in_namespace(tools, **given):
    return {"input": "q", "tools": [{"type": "namespace", "name": "ns", "tools": tools, **given}]}


MALFORMED_STREAMS = [
    ({"input": "q", "tools": 5}, "body.tools"),
    ({"input": "q", "tools": {"a": 1}}, "body.tools"),
    ({"input": "q", "tools": ["a"]}, "body.tools.0"),
    (in_namespace([{}]), "body.tools.0.namespace.tools.0.name"),
    (in_namespace(5), "body.tools.0.namespace.tools"),
    (in_namespace([5]), "body.tools.0.namespace.tools.0"),
    (in_namespace([], name=None), "body.tools.0.namespace.name"),
    ({"input": [{"type": "additional_tools", "tools": 5}]}, "body.input.items.0.additional_tools.tools"),
    (
        {"input": [{"type": "function_call", "namespace": "ns", "call_id": "c", "arguments": "{}"}]},
        "body.input.items.0.namespaced_call.name",
    ),
    (
        {"input": [{"type": "function_call", "namespace": 5, "name": "f"}]},
        "body.input.items.0.namespaced_call.namespace",
    ),
    ({"input": 5}, "body.input"),
]


@pytest.mark.parametrize(("body", "where"), MALFORMED_STREAMS)
def test_a_malformed_streamed_request_is_answered_422_and_the_place_is_said(served, url, body, where):
    reply = post(f"{url}/v1/responses", {**body, "stream": True})
    assert (reply.status, served[0].asked) == (422, [])
    assert all(".".join(map(str, detail["loc"])).startswith(where) for detail in reply.json()["detail"])


@pytest.mark.parametrize("stream", [{}, {"stream": True}])
@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/responses", {"input": "q"}),
        ("/v1/chat/completions", {"messages": [{"role": "user", "content": "q"}]}),
        ("/v1/messages", {"messages": [{"role": "user", "content": "q"}]}),
    ],
)
def test_half_a_character_of_a_model_is_sent_as_a_replacement_character(url, path, body, stream):
    reply = post(url + path, {**body, **stream})
    assert (reply.status, "a\ufffdb\U0001f600" in reply.text) == (200, True)
