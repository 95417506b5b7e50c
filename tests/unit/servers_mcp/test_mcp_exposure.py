"""Tools over MCP: what is listed, whose session a call lands in, and what the verifier and the row are told."""

from typing import Annotated

import pytest
from fastapi import Depends, FastAPI
from starlette.middleware.gzip import GZipMiddleware

from rollbook.errors import ConfigError
from rollbook.servers.mcp.exposure import maybe_auto_expose
from rollbook.servers.mcp.session_token import sealed
from unit.servers_mcp.weather import CALL, WeatherServer, asked, rpc, seeded, verify_body, weather

TOOLS = ["closed", "forget", "get_weather", "note"]
SEED = {
    "resources_session_id": "s1",
    "episode_id": {"rollout_id": "7-2"},
    "task_id": {"taskset": "weather", "task_id": "7"},
    "task_data": {},
}


async def call(client, token, name="get_weather", arguments=None):
    params = {"name": name, "arguments": {"city": "Oslo"} if arguments is None else arguments}
    return (await rpc(client, "tools/call", params, token))["result"]


async def test_a_server_that_does_not_expose_its_tools_has_no_such_door():
    async with asked(weather(exposed=False).build_app()) as client:
        assert (await client.post("/mcp", json={})).status_code == 404
        assert (await client.post("/seed_session", json={})).json() == {}


async def test_every_tool_is_listed_with_its_description_and_the_schema_of_its_body():
    async with asked(weather().build_app()) as client:
        tools = {tool["name"]: tool for tool in (await rpc(client, "tools/list"))["result"]["tools"]}
    assert sorted(tools) == TOOLS
    assert tools["get_weather"]["description"] == "Tell the weather of a city."
    assert tools["get_weather"]["inputSchema"]["properties"]["city"]["minLength"] == 2
    assert tools["forget"]["inputSchema"] == {"type": "object", "properties": {}}
    assert tools["note"]["inputSchema"]["type"] == "object"


async def test_a_call_lands_in_the_session_that_plain_http_and_verify_see():
    async with asked(weather().build_app()) as client:
        token = await seeded(client)
        result = await call(client, token)
        assert result["structuredContent"] == {"city": "Oslo", "weather": "sunny"}
        assert result["isError"] is False
        await client.post("/get_weather", json={"city": "Rome"})
        row = (await client.post("/verify", json=verify_body())).json()
    assert row["seen"] == ["Oslo", "Rome"]


async def test_sessions_do_not_see_each_other():
    app = weather().build_app()
    async with asked(app) as one, asked(app) as other:
        first, second = await seeded(one), await seeded(other)
        await call(one, first)
        await call(one, second, arguments={"city": "Rome"})
        assert (await one.post("/verify", json=verify_body())).json()["seen"] == ["Oslo"]
        assert (await other.post("/verify", json=verify_body())).json()["seen"] == ["Rome"]


async def test_the_cookie_of_a_session_is_no_token():
    async with asked(weather().build_app()) as client:
        await seeded(client)
        result = await call(client, None)
    assert result["isError"] is True
    assert "X-NeMo-Gym-Session-Token" in result["content"][0]["text"]


@pytest.mark.parametrize(
    "token", ["", "made up", sealed("AnotherServer___weather", "s", None)], ids=["none", "made up", "another's"]
)
async def test_a_token_that_this_server_did_not_seal_opens_nothing(token):
    async with asked(weather().build_app()) as client:
        assert (await call(client, token))["isError"] is True
        assert len((await rpc(client, "tools/list", token=token))["result"]["tools"]) == len(TOOLS)


@pytest.mark.parametrize(
    ("name", "arguments", "text"),
    [
        ("get_weather", {}, "city: Field required"),
        ("get_weather", {"city": "x"}, "city: String should have at least 2 characters"),
        ("closed", {}, "the office is closed"),
        ("note", {"wrong": 1}, "noted 1"),
        ("fly", {}, "this session has no tool 'fly'"),
    ],
)
async def test_what_the_model_did_wrong_is_told_to_the_model(name, arguments, text):
    async with asked(weather().build_app()) as client:
        result = await call(client, await seeded(client), name, arguments)
    assert result == {"content": [{"type": "text", "text": text}], "isError": True}


@pytest.mark.parametrize(("name", "text"), [("forget", "forgotten"), ("note", "noted 0")])
async def test_text_comes_as_text(name, text):
    async with asked(weather().build_app()) as client:
        result = await call(client, await seeded(client), name, {})
    assert result == {"content": [{"type": "text", "text": text}], "isError": False}


async def test_a_typed_seed_is_told_in_its_own_field():
    async with asked(weather().build_app()) as client:
        answer = (await client.post("/seed_session", json=SEED)).json()
        tools = answer["resources_tools"]
        assert (tools["server_name"], tools["url_path"], tools["transport"]) == ("weather", "/mcp", "http")
        assert "mcp" not in answer
        assert (await call(client, tools["headers"]["X-NeMo-Gym-Session-Token"]))["isError"] is False


async def test_a_session_may_be_allowed_a_part_of_the_tools():
    class Narrow(WeatherServer):
        def mcp_allowed_tools_for_session(self, seed_body):
            return ["get_weather"]

    async with asked(weather(Narrow).build_app()) as client:
        token = await seeded(client)
        listed = (await rpc(client, "tools/list", token=token))["result"]["tools"]
        assert [tool["name"] for tool in listed] == ["get_weather"]
        assert (await call(client, token))["isError"] is False
        assert (await call(client, token, "forget", {}))["isError"] is True


async def test_a_verifier_reads_its_own_names_and_the_row_keeps_what_the_model_wrote():
    async with asked(weather().build_app()) as client:
        row = (await client.post("/verify", json=verify_body(CALL))).json()
    assert row["called"] == ["get_weather"]
    assert row["reward"] == 1.0
    assert row["response"]["output"][0]["name"] == "mcp__weather__get_weather"


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("mcp__weather_2__get_weather", "get_weather"),
        ("get_weather", "get_weather"),
        ("mcp__weather__fly", "mcp__weather__fly"),
        ("mcp__get_weather", "mcp__get_weather"),
    ],
)
async def test_only_a_name_of_a_tool_behind_a_server_is_another_one(written, read):
    async with asked(weather().build_app()) as client:
        row = (await client.post("/verify", json=verify_body({**CALL, "name": written}))).json()
    assert (row["called"], row["response"]["output"][0]["name"]) == ([read], written)


async def test_a_server_may_know_other_prefixes():
    class Knows(WeatherServer):
        def normalize_tool_name(self, name):
            return name.removeprefix("gym.")

    async with asked(weather(Knows).build_app()) as client:
        row = (await client.post("/verify", json=verify_body({**CALL, "name": "gym.get_weather"}))).json()
    assert (row["called"], row["response"]["output"][0]["name"]) == (["get_weather"], "gym.get_weather")


class Office(WeatherServer):
    """One route for tools that it names itself."""

    def setup_webserver(self):
        app = super().setup_webserver()
        app.post("/{tool}")(self.any_tool)
        return app

    async def any_tool(self, tool: str, body: dict):
        return {"tool": tool, "arguments": body}

    def mcp_tools(self, harvested, catchall):
        return [*harvested, catchall.tool("send_mail", {"type": "object"}, "Send a mail.")]


async def test_a_route_whose_path_is_a_parameter_stands_behind_tools_that_the_server_names():
    async with asked(weather(Office).build_app()) as client:
        result = await call(client, await seeded(client), "send_mail", {"to": "ann"})
        assert result["structuredContent"] == {"tool": "send_mail", "arguments": {"to": "ann"}}
        listed = (await rpc(client, "tools/list"))["result"]["tools"]
        assert [tool["description"] for tool in listed if tool["name"] == "send_mail"] == ["Send a mail."]
        assert (await client.post("/send_mail", json={"to": "bob"})).json()["arguments"] == {"to": "bob"}


def exposed(change):
    class Changed(Office):
        def setup_webserver(self):
            app = super().setup_webserver()
            change(app)
            return app

    return weather(Changed).build_app()


def with_dependency(app: FastAPI) -> None:
    @app.post("/depends")
    async def depends(who: Annotated[str, Depends(lambda: "ann")]) -> str:
        return who


def with_two_bodies(app: FastAPI) -> None:
    @app.post("/two")
    async def two(a: dict, b: dict) -> str:
        return f"{a} {b}"


def with_query(app: FastAPI) -> None:
    @app.post("/query")
    async def query(q: str) -> str:
        return q


def with_slash(app: FastAPI) -> None:
    @app.post("/v1/tool")
    async def tool() -> str:
        return ""


def with_second_catchall(app: FastAPI) -> None:
    @app.post("/more/{tool}")
    async def more(tool: str) -> str:
        return tool


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (with_dependency, "weather: /depends cannot be called over MCP"),
        (with_two_bodies, "/two cannot be called over MCP"),
        (with_query, "/query cannot be called over MCP, it asks for query_params"),
        (with_slash, "no names of MCP tools: 'v1/tool'"),
        (with_second_catchall, "several routes have a path that is a parameter"),
        (lambda app: app.add_middleware(GZipMiddleware), "MCP calls would pass by the middleware GZipMiddleware"),
    ],
)
def test_what_mcp_could_not_offer_is_refused_when_the_server_starts(change, why):
    with pytest.raises(ConfigError, match=why):
        exposed(change)


@pytest.mark.parametrize("name", ["verify", "get_weather", "two words"])
def test_a_tool_that_a_server_names_itself_needs_a_name_of_its_own(name):
    class Renamed(Office):
        def mcp_tools(self, harvested, catchall):
            return [*harvested, catchall.tool(name)]

    with pytest.raises(ConfigError, match="no names of MCP tools"):
        weather(Renamed).build_app()


async def test_exposing_twice_changes_nothing():
    server = weather()
    app = server.setup_webserver()
    maybe_auto_expose(server, app)
    routes = len(app.routes)
    maybe_auto_expose(server, app)
    assert len(app.routes) == routes


@pytest.mark.parametrize(
    ("sent", "code"),
    [("{", -32700), ("3", -32600), ('{"id": 1, "method": "prompts/list"}', -32601)],
)
async def test_what_is_no_request_is_answered_by_a_code(sent, code):
    async with asked(weather().build_app()) as client:
        reply = await client.post("/mcp", content=sent)
    assert reply.json()["error"]["code"] == code


async def test_a_call_without_a_name_is_an_error_of_the_client():
    async with asked(weather().build_app()) as client:
        assert (await rpc(client, "tools/call", {"arguments": {}}))["error"]["code"] == -32602


async def test_a_notification_is_taken_and_a_stream_is_refused():
    async with asked(weather().build_app()) as client:
        note = await client.post("/mcp", json={"jsonrpc": "2.0", "method": "notifications/initialized"})
        assert (note.status_code, note.content) == (202, b"")
        assert (await client.get("/mcp")).status_code == 405


async def test_a_batch_is_answered_by_a_batch():
    ping = {"jsonrpc": "2.0", "method": "ping"}
    async with asked(weather().build_app()) as client:
        reply = await client.post("/mcp", json=[{**ping, "id": 1}, ping, {**ping, "id": 2}])
    assert [answer["id"] for answer in reply.json()] == [1, 2]


@pytest.mark.parametrize(("wanted", "given"), [("2025-03-26", "2025-03-26"), ("1999-01-01", "2025-06-18")])
async def test_a_revision_that_is_known_here_is_kept(wanted, given):
    async with asked(weather().build_app()) as client:
        result = (await rpc(client, "initialize", {"protocolVersion": wanted}))["result"]
    assert result["protocolVersion"] == given
    assert result["serverInfo"]["name"] == "weather"
