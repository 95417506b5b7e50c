import pytest

from resources_servers.example_tool_call_multireward.app import ToolCallMultiRewardResourcesServer
from unit.shelf.calling import built, example_rows, response, served, shared_rows, tool_call

NAME = "example_tool_call_multireward"
ROW = example_rows(NAME)[0]
CITY = ROW["expected_call"]["arguments"]["city"]
RIGHT = tool_call("get_weather", city=CITY)


async def verified(row, *output):
    async with served(built(ToolCallMultiRewardResourcesServer)) as server:
        return await server.ok("/verify", {**row, "response": response(*output)})


@pytest.mark.parametrize("read", [example_rows, shared_rows])
async def test_the_expected_call_alone_earns_all_three_parts(read):
    for row in read(NAME):
        reply = await verified(row, tool_call(row["expected_call"]["name"], **row["expected_call"]["arguments"]))
        assert (reply["reward"], set(reply["reward_components"].values())) == (3.0, {1.0})


@pytest.mark.parametrize(
    ("output", "parts"),
    [
        ((RIGHT, "It is sunny."), (1, 1, 0)),
        ((RIGHT, RIGHT), (1, 1, 0)),
        ((tool_call("get_weather", city="Elsewhere"), RIGHT), (1, 1, 0)),
        ((tool_call("get_weather", city=CITY.lower()),), (0, 1, 1)),
        ((tool_call("get_weather", city=CITY, unit="K"),), (1, 1, 1)),
        ((tool_call("get_weather", city=7),), (0, 1, 1)),
        ((tool_call("get_climate", city=CITY),), (0, 1, 1)),
        ((tool_call("get_weather"),), (0, 0, 1)),
        (({**RIGHT, "arguments": "{"},), (0, 0, 1)),
        (({**RIGHT, "arguments": "[" * 100_000},), (0, 0, 1)),
        (("It is sunny.",), (0, 0, 0)),
        ((), (0, 0, 0)),
    ],
)
async def test_each_part_is_earned_by_itself_and_the_reward_is_their_sum(output, parts):
    reply = await verified(ROW, *output)
    names = ("correctness", "schema_valid", "format")
    assert tuple(reply[name] for name in names) == tuple(reply["reward_components"][name] for name in names) == parts
    assert reply["reward"] == sum(parts)


async def test_the_tool_says_that_it_is_sunny():
    async with served(built(ToolCallMultiRewardResourcesServer)) as server:
        reply = await server.ok("/get_weather", {"city": "Quito"})
    assert reply == {"city": "Quito", "weather_description": "The weather in Quito is sunny."}


async def test_a_saved_result_can_be_verified_again():
    assert (await verified(await verified(ROW, "no"), RIGHT))["reward"] == 3.0


@pytest.mark.parametrize("city", ['"\\ud800"', "[" * 400 + "]" * 400])
async def test_arguments_that_cannot_be_written_again_are_judged(city):
    reply = await verified(ROW, {**RIGHT, "arguments": f'{{"city": {city}}}'})
    assert reply["reward"] in {1.0, 2.0}
