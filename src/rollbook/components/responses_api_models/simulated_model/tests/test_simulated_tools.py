import json

import pytest

from responses_api_models.simulated_model.answers import known_from
from responses_api_models.simulated_model.chance import Chance
from responses_api_models.simulated_model.conversation import (
    CALL,
    RESULT,
    Conversation,
    Tool,
    Turn,
    from_chat,
    from_responses,
)
from responses_api_models.simulated_model.policy import Behaviour, answer_to
from responses_api_models.simulated_model.tool_calls import arguments_for, calls_for

CHANCE = Chance("root")


def tool(name, **properties):
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    return Tool(name, "", schema)


COUNTER = (tool("increment_counter", count={"type": "integer"}), tool("get_counter_value"))
WEATHER = (tool("get_weather", city={"type": "string"}),)


@pytest.mark.parametrize(
    ("asked", "tools", "calls"),
    [
        (
            "add 1 then add 2 then get the count",
            COUNTER,
            [("increment_counter", {"count": 1}), ("increment_counter", {"count": 2}), ("get_counter_value", {})],
        ),
        (
            "increase it by 7, and read the counter.",
            COUNTER,
            [("increment_counter", {"count": 7}), ("get_counter_value", {})],
        ),
        ("what's it like in sf?", WEATHER, [("get_weather", {"city": "sf"})]),
        ("weather of 'New York' please", WEATHER, [("get_weather", {"city": "New York"})]),
        ("", WEATHER, [("get_weather", {"city": "something"})]),
        ("anything", (), []),
    ],
)
def test_each_part_of_a_request_calls_the_tool_that_fits_it(asked, tools, calls):
    assert [(call.name, json.loads(call.arguments)) for call in calls_for(asked, tools)] == calls


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "string", "enum": ["c", "f"]}, "c"),
        ({"const": None}, None),
        ({"type": "integer", "minimum": 10}, 10),
        ({"type": "number", "maximum": 2}, 2),
        ({"type": ["null", "boolean"]}, True),
        ({"type": "null"}, None),
        ({"type": "array", "items": {"type": "string"}, "minItems": 2}, ["Oslo", "Oslo"]),
        ({"anyOf": [{"type": "null"}, {"type": "string"}]}, "Oslo"),
        ({"$ref": "#/$defs/place"}, {"name": "Oslo"}),
        ({"type": "string", "format": "date"}, "2024-01-31"),
        ({"type": "string", "minLength": 6, "maxLength": 7}, "Osloxx"),
        ({"type": "string", "maxLength": 2}, "Os"),
        ({}, "Oslo"),
    ],
)
def test_arguments_fit_their_schema(schema, value):
    parameters = {
        "type": "object",
        "properties": {"it": schema, "unasked": {"type": "string"}},
        "required": ["it"],
        "$defs": {"place": {"type": "object", "properties": {"name": {"type": "string"}}}},
    }
    assert arguments_for(parameters, "4 days in Oslo") == {"it": value}


def test_a_schema_without_end_is_followed_to_a_fixed_depth():
    schema = {"type": "object", "properties": {"next": {"$ref": "#"}}, "required": ["next"]}
    assert json.dumps(arguments_for(schema, "x")).count("next") == 6
    assert arguments_for({"$ref": "#"}, "x") == {}


def asked(text, *turns, **fields):
    return Conversation((Turn("user", text), *turns), COUNTER, **fields)


def names(said):
    return [call.name for call in said.calls]


def test_a_right_answer_makes_its_calls_and_then_tells_the_last_result():
    text = "add 1 then get the count"
    made = (Turn(CALL, "increment_counter"), Turn(RESULT, "{}"), Turn(CALL, "get_counter_value"), Turn(RESULT, "4"))
    assert names(answer_to(asked(text), None, Behaviour.RIGHT, CHANCE)) == ["increment_counter", "get_counter_value"]
    assert answer_to(asked(text, *made), None, Behaviour.RIGHT, CHANCE).text == "Done. 4"


def test_calls_are_made_one_at_a_time_where_the_request_says_so():
    text = "add 1 then get the count"
    one = answer_to(asked(text, calls_at_once=False), None, Behaviour.RIGHT, CHANCE)
    made = (Turn(CALL, "increment_counter"), Turn(RESULT, "{}"))
    next_one = answer_to(asked(text, *made, calls_at_once=False), None, Behaviour.RIGHT, CHANCE)
    assert (names(one), names(next_one)) == (["increment_counter"], ["get_counter_value"])


@pytest.mark.parametrize("behaviour", [Behaviour.WRONG, Behaviour.REFUSES])
def test_a_wrong_answer_and_a_refusal_call_nothing(behaviour):
    said = answer_to(asked("add 1"), None, behaviour, CHANCE)
    assert said.text
    assert not said.calls


def test_a_malformed_answer_calls_a_tool_with_arguments_that_are_no_json():
    (call,) = answer_to(asked("add 1"), None, Behaviour.MALFORMED, CHANCE).calls
    with pytest.raises(json.JSONDecodeError):
        json.loads(call.arguments)
    after = asked("add 1", Turn(CALL, "increment_counter"), Turn(RESULT, "error"))
    assert not answer_to(after, None, Behaviour.MALFORMED, CHANCE).calls


@pytest.mark.parametrize("read", [from_responses, from_chat])
def test_a_request_says_whether_and_how_tools_may_be_called(read):
    plain = read({})
    forbidden = read({"tool_choice": "none", "parallel_tool_calls": False})
    assert (plain.calls_allowed, plain.calls_at_once) == (True, True)
    assert (forbidden.calls_allowed, forbidden.calls_at_once) == (False, False)


def test_nothing_is_called_where_calls_are_forbidden():
    assert not answer_to(asked("add 1", calls_allowed=False), None, Behaviour.RIGHT, CHANCE).calls


def test_the_calls_that_a_row_lists_are_the_right_ones():
    known = known_from({"expected_answers": [{"name": "increment_counter", "arguments": {"count": 9}}]})
    (call,) = answer_to(asked("add 1"), known, Behaviour.RIGHT, CHANCE).calls
    assert json.loads(call.arguments) == {"count": 9}
    foreign = known_from({"ground_truth": [{"name": "other_tool", "arguments": "{}"}]})
    assert names(answer_to(asked("add 1"), foreign, Behaviour.RIGHT, CHANCE)) == ["increment_counter"]


def test_hosted_tools_are_no_functions():
    params = {"input": "x", "tools": [{"type": "web_search"}, {"type": "function", "name": "f", "parameters": None}]}
    assert [offered.name for offered in from_responses(params).tools] == ["f"]
