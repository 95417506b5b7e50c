"""Names of tools: what a verifier is shown, and what stands in the row when it has changed the response."""

from typing import Any

import pytest
from fastapi import Request
from fastapi.responses import JSONResponse

from rollbook.servers.kinds.resources_sessions import BaseVerifyRequest
from rollbook.servers.mcp.tool_names import own_name
from unit.servers_mcp.weather import CALL, WeatherAnswer, WeatherServer, asked, verify_body, weather

PLAIN = {**CALL, "name": "get_weather"}
FORGET = {**CALL, "call_id": "c2", "name": "mcp__weather__forget"}


def message(text):
    content = [{"type": "output_text", "text": text, "annotations": []}]
    return {"type": "message", "id": "m1", "role": "assistant", "status": "completed", "content": content}


def as_model(row):
    return WeatherAnswer(**row)


def as_dict(row):
    return row


def as_dict_of_models(row):
    return {**row, "response": WeatherAnswer(**row).response}


async def verified(items, change, form=as_model):
    """Return the output that a verifier's row has, when it answers with a `change` of the output that it was shown."""

    class Changing(WeatherServer):
        async def verify(self, request: Request, body: BaseVerifyRequest) -> Any:
            row = {**body.model_dump(mode="json"), "reward": 1.0, "seen": [], "called": []}
            row["response"]["output"] = change(row["response"]["output"])
            return form(row)

    async with asked(weather(Changing).build_app()) as client:
        reply = await client.post("/verify", json=verify_body(*items))
    assert reply.status_code == 200, reply.text
    return [item.get("name") or item["content"][0]["text"] for item in reply.json()["response"]["output"]]


@pytest.mark.parametrize("form", [as_model, as_dict, as_dict_of_models, JSONResponse])
@pytest.mark.parametrize("call", [CALL, PLAIN])
async def test_what_a_verifier_put_into_the_response_stays_and_names_are_those_that_the_model_wrote(call, form):
    told = await verified([call, FORGET], lambda output: [message("judged"), *output], form)
    assert told == ["judged", call["name"], "mcp__weather__forget"]


@pytest.mark.parametrize("form", [as_model, as_dict, as_dict_of_models, JSONResponse])
async def test_a_call_that_stands_elsewhere_has_its_own_name_again(form):
    told = await verified([CALL, FORGET], lambda output: output[::-1], form)
    assert told == ["mcp__weather__forget", "mcp__weather__get_weather"]


@pytest.mark.parametrize("form", [as_model, as_dict])
@pytest.mark.parametrize("call", [CALL, PLAIN])
async def test_what_a_verifier_took_out_of_the_response_is_gone(call, form):
    assert await verified([call, FORGET], lambda output: output[1:], form) == ["mcp__weather__forget"]


@pytest.mark.parametrize("form", [as_model, as_dict])
async def test_a_name_that_a_verifier_gave_a_call_stays(form):
    told = await verified([CALL, FORGET], lambda output: [{**output[0], "name": "other"}, output[1]], form)
    assert told == ["other", "mcp__weather__forget"]


async def test_calls_that_share_an_id_are_told_apart_by_their_tool_and_then_by_their_order():
    calls = [PLAIN, {**FORGET, "call_id": "c1"}, CALL]
    assert await verified(calls, list) == [call["name"] for call in calls]


async def test_a_call_that_a_verifier_repeats_has_the_models_name_each_time():
    assert await verified([CALL], lambda output: output * 2) == [CALL["name"]] * 2


@pytest.mark.parametrize(
    ("name", "tool"),
    [
        ("mcp__office__eu__get_weather", "eu__get_weather"),
        ("mcp__office__get_weather", "get_weather"),
        ("mcp__eu__get_weather", "get_weather"),
    ],
)
@pytest.mark.parametrize("tools", [["get_weather", "eu__get_weather"], ["eu__get_weather", "get_weather"]])
def test_of_two_tools_that_fit_a_name_it_is_that_of_the_longer_one(name, tool, tools):
    assert own_name(name, tools) == tool
