import pytest

from resources_servers.example_single_tool_call.app import SingleToolCallResourcesServer
from rollbook.testing.session_conformance import check_resources_session_contract
from unit.shelf.calling import built, example_rows, response, served, shared_rows, tool_call

NAME = "example_single_tool_call"
ROW = example_rows(NAME)[0]
REASONING = {"type": "reasoning", "id": "rs_1", "summary": []}
EPISODE = {"rollout_id": "3-0", "attempt": 0}
TASK = {"taskset": "weather", "task_id": "3"}


def opening(name="s1", episode=EPISODE, task=TASK):
    return {"resources_session_id": name, "episode_id": episode, "task_id": task, "task_data": {"city": "Oslo"}}


def closing(name="s1", episode=EPISODE):
    return {"resources_session_id": name, "episode_id": episode}


@pytest.mark.parametrize(
    ("output", "reward"),
    [
        ([tool_call("get_weather", city="Oslo")], 1.0),
        ([tool_call("get_weather")], 1.0),
        ([REASONING, "I look.", tool_call("get_weather", city="Oslo"), "It is cold."], 1.0),
        ([tool_call("get_news"), tool_call("get_weather", "call_2", city="Lima")], 1.0),
        ([tool_call("get_weather_report", city="Oslo")], 0.0),
        ([tool_call("Get_Weather", city="Oslo")], 0.0),
        (["get_weather(Oslo)"], 0.0),
        ([], 0.0),
    ],
)
async def test_a_call_of_the_tool_is_worth_one_and_nothing_else_is(output, reward):
    async with served(built(SingleToolCallResourcesServer)) as server:
        assert (await server.ok("/verify", {**ROW, "response": response(*output)}))["reward"] == reward


@pytest.mark.parametrize("read", [example_rows, shared_rows])
async def test_every_row_can_be_seeded_played_and_verified(read):
    async with served(built(SingleToolCallResourcesServer)) as server:
        for row in read(NAME):
            (tool,) = row["responses_create_params"]["tools"]
            assert await server.ok("/seed_session", row) == {}
            said = await server.ok(f"/{tool['name']}", {"city": "Bergen"})
            reply = await server.ok("/verify", {**row, "response": response(tool_call(tool["name"], city="Bergen"))})
            assert said == {"city": "Bergen", "weather_description": "The weather in Bergen is cold."}
            assert (reply["reward"], reply["mask_sample"]) == (1.0, False)


async def test_the_rows_own_fields_come_back():
    async with served(built(SingleToolCallResourcesServer)) as server:
        assert (await server.ok("/verify", {**ROW, "response": response("no")}))["uuid"] == ROW["uuid"]


@pytest.mark.parametrize("arguments", [{}, {"city": None}, {"town": "Oslo"}])
async def test_a_call_without_a_city_is_refused(arguments):
    async with served(built(SingleToolCallResourcesServer)) as server:
        assert (await server.post("/get_weather", arguments)).status == 422


async def test_saved_responses_can_be_verified_again():
    async with served(built(SingleToolCallResourcesServer)) as server:
        assert (await server.get("/reverify_mode")).json() == "stateless"


async def test_a_typed_session_opens_and_closes_as_often_as_it_is_asked_to():
    async with served(built(SingleToolCallResourcesServer)) as server:
        for _ in range(2):
            assert (await server.ok("/seed_session", opening()))["resources_session_id"] == "s1"
        for _ in range(2):
            assert (await server.ok("/close_session", closing()))["resources_session_id"] == "s1"


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/seed_session", opening(episode={"rollout_id": "3-1", "attempt": 0})),
        ("/seed_session", opening(episode={"rollout_id": "3-0", "attempt": 1})),
        ("/seed_session", opening(task={"taskset": "weather", "task_id": "4"})),
        ("/close_session", closing(episode={"rollout_id": "3-1", "attempt": 0})),
    ],
)
async def test_an_open_typed_session_belongs_to_its_own_episode_and_task(path, body):
    async with served(built(SingleToolCallResourcesServer)) as server:
        await server.ok("/seed_session", opening())
        assert (await server.newcomer().post(path, body)).status == 409


async def test_a_closed_typed_session_stays_closed():
    async with served(built(SingleToolCallResourcesServer)) as server:
        await server.ok("/seed_session", opening())
        await server.ok("/close_session", closing())
        assert (await server.post("/seed_session", opening())).status == 409


async def test_the_contract_of_typed_sessions_is_kept():
    await check_resources_session_contract(
        built(SingleToolCallResourcesServer).build_app(), opening(), keeps_state=True
    )
