import httpx
import pytest

from resources_servers.example_mcp_weather.app import MOST_SESSIONS, McpWeatherResourcesServer
from unit.servers_core.stand_ins import behind_a_socket
from unit.shelf.calling import built, example_rows, response, served, shared_rows, tool_call

NAME = "example_mcp_weather"
ROWS = example_rows(NAME)
ROW = ROWS[0]
SENTENCE = ROW["expected_answer"]


def weather(**options):
    return built(McpWeatherResourcesServer, NAME, expose_tools_over_mcp=True, **options)


def said(*output, row=ROW):
    return {**row, "response": response(*output)}


@pytest.mark.parametrize("read", [example_rows, shared_rows])
async def test_asking_for_the_city_and_passing_its_weather_on_is_worth_one(read):
    async with served(weather()) as server:
        for row in read(NAME):
            session = server.newcomer()
            await session.ok("/seed_session", row)
            city = row["verifier_metadata"]["expected_city"]
            answer = await session.ok("/get_weather", {"city": city})
            assert answer == {"weather": f"The weather in {city} is sunny and 72 F."}
            assert (await session.ok("/verify", said(answer["weather"], row=row)))["reward"] == 1.0


async def test_the_reply_carries_the_row_and_can_be_verified_again():
    async with served(weather()) as server:
        reply = await server.ok("/verify", said(SENTENCE, row={**ROW, "source": "map"}))
        assert (reply["reward"], reply["source"], reply["expected_weather"]) == (0.0, "map", SENTENCE)
        await server.ok("/get_weather", {"city": "Bergen"})
        assert (await server.ok("/verify", reply))["reward"] == 1.0


@pytest.mark.parametrize(
    ("asked", "output", "found"),
    [
        (["Bergen"], ["Well. the weather in BERGEN is sunny and 72 f. Bye."], (1.0, True, True)),
        (["bERGEN"], [SENTENCE], (1.0, True, True)),
        (["Oslo", "Bergen", "Rome"], [SENTENCE], (1.0, True, True)),
        (["Bergen"], ["Sunny."], (0.0, True, False)),
        (["Bergen"], [tool_call("get_weather", city="Bergen")], (0.0, True, False)),
        (["Oslo"], [SENTENCE], (0.0, False, True)),
        ([], [tool_call("get_weather", city="Bergen"), SENTENCE], (0.0, False, True)),
        ([], [], (0.0, False, False)),
    ],
)
async def test_both_the_call_and_the_sentence_are_needed(asked, output, found):
    async with served(weather()) as server:
        await server.ok("/seed_session", ROW)
        for city in asked:
            await server.ok("/get_weather", {"city": city})
        reply = await server.ok("/verify", said(*output))
    names = ("reward", "tool_call_seen", "final_response_mentions_weather")
    assert tuple(reply[name] for name in names) == found


async def test_sessions_know_nothing_of_each_other_and_seeding_forgets():
    async with served(weather()) as server:
        other = server.newcomer()
        for session in (server, other):
            await session.ok("/seed_session", ROW)
        await server.ok("/get_weather", {"city": "Bergen"})
        assert (await other.ok("/verify", said(SENTENCE)))["reward"] == 0.0
        assert (await server.ok("/verify", said(SENTENCE)))["reward"] == 1.0
        await server.ok("/seed_session", ROW)
        assert (await server.ok("/verify", said(SENTENCE)))["reward"] == 0.0


async def test_of_sessions_those_used_last_are_kept():
    server = weather()
    for number in range(MOST_SESSIONS + 1):
        server._keep(str(number % MOST_SESSIONS), set())
    assert len(server._asked) == MOST_SESSIONS
    server._keep("late", set())
    assert "1" not in server._asked
    assert {"0", "late"} <= server._asked.keys()


@pytest.mark.parametrize("body", [{}, {"city": 5}, {"city": "x" * 201}])
async def test_what_is_no_city_is_refused(body):
    async with served(weather()) as server:
        assert (await server.post("/get_weather", body)).status == 422


async def test_a_row_without_a_city_is_refused():
    async with served(weather()) as server:
        assert (await server.post("/verify", said(row={**ROW, "verifier_metadata": {}}))).status == 422


async def test_a_client_of_the_mcp_package_asks_and_the_verifier_knows_it():
    mcp = pytest.importorskip("mcp")
    streamable = pytest.importorskip("mcp.client.streamable_http")
    async with behind_a_socket(weather().build_app()) as url, httpx.AsyncClient(base_url=url) as plain:
        seeded = (await plain.post("/seed_session", json=ROW)).json()["mcp"]
        async with (
            streamable.create_mcp_http_client(headers=seeded["headers"]) as client,
            streamable.streamable_http_client(url + seeded["url_path"], http_client=client) as (read, write, *_),
            mcp.ClientSession(read, write) as session,
        ):
            await session.initialize()
            assert [tool.name for tool in (await session.list_tools()).tools] == ["get_weather"]
            result = await session.call_tool("get_weather", {"city": "Bergen"})
            assert result.structured_content == {"weather": SENTENCE}
            assert (await session.call_tool("get_weather", {"city": 5})).is_error
        called = {**tool_call("get_weather", city="Bergen"), "name": f"mcp__{NAME}__get_weather"}
        reply = (await plain.post("/verify", json=said(called, SENTENCE))).json()
    assert (reply["reward"], reply["response"]["output"][0]["name"]) == (1.0, called["name"])
