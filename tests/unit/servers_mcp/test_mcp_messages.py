"""What messages carry: values that JSON bears with effort, answers that it does not bear, batches, and bounds."""

import json
import logging
from typing import Any

import pytest
from fastapi.responses import StreamingResponse

from rollbook.servers.mcp.endpoint import MOST_BYTES, MOST_MESSAGES
from unit.servers_mcp.weather import ACCEPT, WeatherServer, asked, rpc, seeded, weather

DEEP = 300
PING = {"jsonrpc": "2.0", "method": "ping"}


def nested(depth):
    value: Any = {}
    for _ in range(depth):
        value = {"in": value}
    return value


ANSWERS = {
    "a large number": {"n": 2**70},
    "half a character": {"text": "\ud800"},
    "a number as key": {1: "one"},
    "nested": nested(DEEP),
    "too deep": nested(100_000),
    "no JSON": {"thing": object()},
    "no JSON number": {"n": 2**70, "x": float("nan")},
    "large": {"text": "x" * 100_000},
}


class Odd(WeatherServer):
    def setup_webserver(self):
        app = super().setup_webserver()
        app.post("/odd")(self.odd)
        app.post("/echo")(self.echo)
        app.post("/streams", response_model=None)(self.streams)
        app.post("/defect")(self.defect)
        return app

    async def odd(self, body: dict) -> Any:
        return ANSWERS[body["which"]]

    async def echo(self, body: dict) -> Any:
        return body

    async def streams(self) -> StreamingResponse:
        return StreamingResponse(iter(["a", "b"]))

    async def defect(self) -> None:
        raise KeyError("no such city")


async def called(name, arguments):
    async with asked(weather(Odd).build_app()) as client:
        answer = await rpc(client, "tools/call", {"name": name, "arguments": arguments}, await seeded(client))
    return answer["result"]


@pytest.mark.parametrize("which", ["a large number", "half a character", "a number as key", "nested"])
async def test_an_answer_that_json_can_bear_is_sent_as_it_is(which):
    result = await called("odd", {"which": which})
    told = json.loads(json.dumps(ANSWERS[which]))
    assert (result["structuredContent"], result["isError"]) == (told, False)
    assert json.loads(result["content"][0]["text"]) == told


@pytest.mark.parametrize("which", ["too deep", "no JSON", "no JSON number"])
async def test_an_answer_that_json_cannot_bear_is_told_to_the_model(which):
    result = await called("odd", {"which": which})
    assert result["isError"] is True
    assert result["content"][0]["text"].startswith("the tool's answer is no JSON: ")


async def test_an_answer_that_is_streamed_is_told_to_the_model():
    result = await called("streams", {})
    assert result["isError"] is True
    assert "over plain HTTP" in result["content"][0]["text"]


@pytest.mark.parametrize("arguments", [nested(DEEP), {"n": 2**70 + 1}, {"text": "\ud800"}])
async def test_a_tool_is_given_the_arguments_that_plain_http_would_give_it(arguments):
    assert (await called("echo", arguments))["structuredContent"] == arguments


async def test_a_large_answer_is_sent_once_as_text():
    result = await called("odd", {"which": "large"})
    assert json.loads(result["content"][0]["text"]) == ANSWERS["large"]
    assert "structuredContent" not in result


@pytest.mark.parametrize("body", [b'{"id": NaN}', b"[" * 100_000, b"\xff", b'{"id": 1' + b"0" * 5000 + b"}"])
async def test_what_cannot_be_read_is_no_json(body):
    async with asked(weather().build_app()) as client:
        reply = await client.post("/mcp", content=body)
    assert (reply.status_code, reply.json()["error"]["code"]) == (400, -32700)


@pytest.mark.parametrize("identity", [{}, [], [1]])
async def test_a_request_whose_id_is_no_text_or_number_is_none(identity):
    async with asked(weather().build_app()) as client:
        answer = await rpc(client, "ping", id=identity)
    assert (answer["error"]["code"], answer["id"]) == (-32600, None)


async def batch(client, messages, token=None):
    headers = {**ACCEPT, **({"X-NeMo-Gym-Session-Token": token} if token else {})}
    return await client.post("/mcp", headers=headers, json=messages)


async def test_a_defect_in_one_call_of_a_batch_loses_no_other_answer(caplog):
    caplog.set_level(logging.ERROR)
    calls = ["forget", "defect", "forget"]
    messages = [
        {"jsonrpc": "2.0", "id": place, "method": "tools/call", "params": {"name": name}}
        for place, name in enumerate(calls)
    ]
    async with asked(weather(Odd).build_app()) as client:
        first, second, third = (await batch(client, messages, await seeded(client))).json()
    assert [first["id"], second["id"], third["id"]] == [0, 1, 2]
    assert first["result"]["isError"] is third["result"]["isError"] is False
    assert second["error"] == {"code": -32603, "message": "KeyError('no such city')"}
    assert "a tool raised in a batch: KeyError: 'no such city'" in caplog.text


async def test_a_defect_in_a_call_of_its_own_is_that_of_the_plain_route():
    message = {**PING, "id": 1, "method": "tools/call", "params": {"name": "defect"}}
    async with asked(weather(Odd).build_app()) as client:
        plain = await client.post("/defect")
        reply = await client.post("/mcp", headers={"X-NeMo-Gym-Session-Token": await seeded(client)}, json=message)
    assert (reply.status_code, reply.content) == (plain.status_code, plain.content) == (500, plain.content)


@pytest.mark.parametrize("count", [0, MOST_MESSAGES + 1])
async def test_a_batch_of_none_or_too_many_is_one_error(count):
    async with asked(weather().build_app()) as client:
        reply = await batch(client, [{**PING, "id": 1}] * count)
    assert (reply.status_code, reply.json()["error"]["code"]) == (400, -32600)


async def test_a_batch_of_notifications_is_taken():
    async with asked(weather().build_app()) as client:
        reply = await batch(client, [PING] * MOST_MESSAGES)
    assert (reply.status_code, reply.content) == (202, b"")


@pytest.mark.parametrize(("size", "status"), [(MOST_BYTES, 200), (MOST_BYTES + 1, 413)])
async def test_a_body_is_bounded(size, status):
    async with asked(weather().build_app()) as client:
        reply = await client.post("/mcp", content=json.dumps({**PING, "id": 1}).encode().ljust(size))
    assert reply.status_code == status
