import asyncio
import json

import pytest

from resources_servers.xlam_fc.app import XlamFcResourcesServer
from resources_servers.xlam_fc.matching import ExpectedCall, matched, predicted
from unit.shelf.calling import built, example_rows, response, served, shared_rows, tool_call

NAME = "xlam_fc"
ROW = example_rows(NAME)[0]


async def verified(row, *output):
    async with served(built(XlamFcResourcesServer)) as server:
        return await server.ok("/verify", {**row, "response": response(*output)})


def gold(row):
    return [tool_call(call["name"], **call["arguments"]) for call in row["expected_answers"]]


def number(calls, *wanted):
    return matched(
        [ExpectedCall(name="f", arguments=arguments) for arguments in wanted],
        [predicted("f", json.dumps(arguments)) for arguments in calls],
    )


@pytest.mark.parametrize("read", [example_rows, shared_rows])
async def test_the_expected_calls_in_any_order_are_worth_one_and_one_call_too_many_nothing(read):
    for row in read(NAME):
        calls = gold(row)
        assert (await verified(row, *reversed(calls), "Done."))["reward"] == 1.0
        assert (await verified(row, *calls, tool_call("another")))["reward"] == 0.0


@pytest.mark.parametrize("read", [example_rows, shared_rows])
async def test_one_call_too_few_is_worth_nothing(read):
    for row in read(NAME):
        if row["expected_answers"]:
            assert (await verified(row, *gold(row)[:-1]))["reward"] == 0.0


async def test_a_row_that_expects_no_call_is_worth_one_when_none_is_made():
    nothing = {**ROW, "expected_answers": []}
    assert (await verified(nothing, "You are welcome."))["reward"] == 1.0
    assert (await verified(nothing, tool_call("next_tram")))["reward"] == 0.0


async def test_the_reply_counts_what_was_expected_made_and_right():
    reply = await verified(ROW, gold(ROW)[0], tool_call("next_tram", line="5", stop="Harbour Square"))
    assert [reply[key] for key in ("reward", "num_expected", "num_predicted", "num_correct")] == [0.0, 2, 2, 1]
    assert reply["predicted_calls"][1] == {"name": "next_tram", "arguments": {"line": "5", "stop": "Harbour Square"}}


@pytest.mark.parametrize(
    ("calls", "wanted", "count"),
    [
        ([{"a": 1, "b": 2}], [{"a": 1}], 1),
        ([{"a": 1}], [{"a": 1, "b": 2}], 0),
        ([{"a": "1"}], [{"a": 1}], 0),
        ([{"a": {"x": [1, 2]}}], [{"a": {"x": [1, 2]}}], 1),
        ([{"a": {"x": [2, 1]}}], [{"a": {"x": [1, 2]}}], 0),
        ([{"a": 1}], [{"a": 1}, {"a": 1}], 1),
        ([{"a": 2}, {"a": 1}], [{"a": 1}, {"a": 2}], 2),
        ([{}], [{}], 1),
    ],
)
def test_arguments_match_when_those_expected_are_among_those_given(calls, wanted, count):
    assert number(calls, *wanted) == count


@pytest.mark.parametrize(
    "arguments", ["{", "[1]", '"a"', "[" * 100_000, "9" * 5_000, '{"a": ' + "[" * 400 + "]" * 400 + "}"]
)
async def test_a_call_whose_arguments_are_no_object_matches_nothing_and_counts(arguments):
    call = {"type": "function_call", "call_id": "c", "name": "next_tram", "arguments": arguments}
    reply = await verified({**ROW, "expected_answers": [{"name": "next_tram", "arguments": {}}]}, call)
    assert [reply[key] for key in ("reward", "num_predicted", "num_correct")] == [0.0, 1, 0]
    assert reply["predicted_calls"] == [{"name": "next_tram", "arguments": arguments}]


@pytest.mark.parametrize("arguments", ["", "null", "{}"])
async def test_no_arguments_may_be_said_in_three_ways(arguments):
    call = {"type": "function_call", "call_id": "c", "name": "now", "arguments": arguments}
    assert (await verified({**ROW, "expected_answers": [{"name": "now"}]}, call))["reward"] == 1.0


async def test_a_saved_result_can_be_verified_again():
    once = await verified(ROW, *gold(ROW))
    assert (await verified({**once, "reward": 0.5}, *gold(ROW)))["reward"] == 1.0


async def test_ten_thousand_calls_are_judged_while_another_row_is():
    async with served(built(XlamFcResourcesServer)) as server:
        flood = {**ROW, "response": response(*[tool_call("next_tram", f"c{n}", line=str(n)) for n in range(10_000)])}
        small = {**ROW, "response": response(*gold(ROW))}
        flooded, right = await asyncio.gather(server.ok("/verify", flood), server.ok("/verify", small))
    assert (flooded["reward"], flooded["num_predicted"], right["reward"]) == (0.0, 10_000, 1.0)


async def test_half_a_character_in_arguments_is_judged_like_any_other_text():
    call = {"type": "function_call", "call_id": "c", "name": "now", "arguments": '{"a": "\\ud800"}'}
    reply = await verified({**ROW, "expected_answers": [{"name": "now", "arguments": {"a": "x"}}]}, call)
    assert (reply["reward"], reply["predicted_calls"][0]["arguments"]) == (0.0, {"a": "\ufffd"})
