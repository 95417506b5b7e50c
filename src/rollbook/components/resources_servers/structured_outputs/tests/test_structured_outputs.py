import asyncio
import importlib.util
import json
import os

import pytest

from rollbook import MissingPackageError
from unit.shelf.calling import built, example_rows, response, served, shared_rows, tool_call

pytest.importorskip("jsonschema")

from resources_servers.structured_outputs.app import LONG_TEXT, StructuredOutputsResourcesServer
from resources_servers.structured_outputs.checking import fault
from resources_servers.structured_outputs.questions import Question
from resources_servers.structured_outputs.workers import CheckerPool

NAME = "structured_outputs"
ROWS = example_rows(NAME)
CITY = {"type": "object", "properties": {"city": {"type": "string"}}}
SLOW = {"type": "object", "properties": {"city": {"type": "string", "pattern": "^(a+)+$"}}}

GIVEN = [
    (["Oslo"], {}, "missing_tool_call"),
    ([tool_call("find", city="Oslo"), tool_call("find", city="Oslo")], {}, "multiple_tool_calls"),
    ([tool_call("look", city="Oslo")], {}, "wrong_tool_name"),
    ([tool_call("look", city="Oslo")], {"tool_name": None}, None),
    ([{**tool_call("find"), "arguments": '{"city": "Os'}], {}, "tool_arguments_parse_error"),
    ([{**tool_call("find"), "arguments": '{"city": NaN}'}], {}, "tool_arguments_parse_error"),
    ([tool_call("find", city="Oslo")], {"tool_payload_key": "place"}, "missing_tool_payload_key"),
    ([{**tool_call("find"), "arguments": "[]"}], {"tool_payload_key": "place"}, "missing_tool_payload_key"),
    ([tool_call("find", place={"city": "Oslo"}, why="?")], {"tool_payload_key": "place"}, None),
    ([tool_call("find", city=5)], {}, "validation_error"),
    ([tool_call("find", city="5")], {"schema_type": "xml"}, None),
    (["I look.", tool_call("find", city="Oslo"), "Found."], {}, None),
    ([tool_call("find", city="Oslo")], {"response_mode": "text"}, "empty_response"),
    ([" \n"], {"response_mode": None}, "empty_response"),
    (['{"city":', ' "Oslo"}'], {"response_mode": "text"}, None),
]


def row(schema=CITY, **fields):
    text = schema if isinstance(schema, str) else json.dumps(schema)
    return {"responses_create_params": {"input": "Which city?"}, "schema_str": text, **fields}


def right(row):
    if "expected_answer" in row:
        return row["expected_answer"]
    (call,) = row["expected_answers"]
    return tool_call(call["name"], **call["arguments"])


async def all_verified(*pairs, **options):
    async with served(built(StructuredOutputsResourcesServer, **options)) as server:
        return [await server.ok("/verify", {**asked, "response": response(*given)}) for asked, *given in pairs]


async def test_the_right_answer_to_an_example_row_is_worth_one_and_that_to_another_nothing():
    own = await all_verified(*((asked, right(asked)) for asked in ROWS))
    assert [(reply["reward"], reply["error_type"]) for reply in own] == [(1.0, None)] * len(ROWS)
    others = await all_verified(*((asked, right(ROWS[at - 1])) for at, asked in enumerate(ROWS)))
    assert [reply["reward"] for reply in others] == [0.0] * len(ROWS)


async def test_shared_rows_are_read_and_an_answer_without_structure_is_worth_nothing():
    for reply in await all_verified(*((asked, "It is Oslo.") for asked in shared_rows(NAME))):
        assert (reply["reward"], reply["mask_sample"]) == (0.0, False), reply["error_message"]


async def test_the_reply_carries_the_row_and_can_be_verified_again():
    (reply,) = await all_verified((row(source="map"), "Oslo"))
    assert (reply["reward"], reply["error_type"], reply["source"]) == (0.0, "parse_error", "map")
    (again,) = await all_verified((reply, '{"city": "Oslo"}'))
    assert (again["reward"], again["error_type"], again["error_message"]) == (1.0, None, None)


async def test_each_way_to_give_no_answer_has_a_name():
    called = {"response_mode": "tool_call", "tool_name": "find"}
    replies = await all_verified(*((row(**(called | fields)), *items) for items, fields, _ in GIVEN))
    assert [reply["error_type"] for reply in replies] == [error_type for *_, error_type in GIVEN]
    assert [reply["reward"] for reply in replies] == [float(error_type is None) for *_, error_type in GIVEN]


async def test_an_error_of_the_api_is_no_missing_call():
    failed = response() | {"error": {"code": "server_error", "message": "down"}}
    async with served(built(StructuredOutputsResourcesServer)) as server:
        reply = await server.ok("/verify", {**row(response_mode="tool_call"), "response": failed})
    assert (reply["reward"], reply["error_type"]) == (0.0, "api_error")


async def test_a_row_whose_schema_cannot_be_used_is_masked_and_a_format_there_is_not_is_refused():
    (reply,) = await all_verified((row({"type": "town"}), "{}"))
    assert (reply["reward"], reply["mask_sample"], reply["failure_kind"]) == (0.0, True, "verifier_error")
    assert (reply["error_type"], "'town'" in reply["failure_reason"]) == ("schema_error", True)
    async with served(built(StructuredOutputsResourcesServer)) as server:
        assert (await server.post("/verify", {**row(schema_type="ini"), "response": response("x")})).status == 422


async def test_a_pattern_that_takes_for_ever_masks_its_answer_and_the_server_goes_on():
    async with served(built(StructuredOutputsResourcesServer, check_timeout_seconds=2)) as server:

        async def verified(city):
            return await server.ok("/verify", {**row(SLOW), "response": response(json.dumps({"city": city}))})

        stuck, long = await asyncio.gather(verified("a" * 50 + "!"), verified("a" * 50 + "!" * LONG_TEXT))
        after = await verified("aa")
    assert (stuck["reward"], stuck["mask_sample"], stuck["failure_reason"]) == (
        0.0,
        True,
        "not decided within 2 seconds",
    )
    assert (long["reward"], long["mask_sample"], long["error_type"]) == (0.0, False, "validation_error")
    assert after["reward"] == 1.0


async def test_no_process_outlives_the_pool():
    pool = CheckerPool(seconds=60)
    asked = asyncio.create_task(pool.ask(Question(json.dumps(SLOW), json.dumps({"city": "a" * 50 + "!"}))))
    await asyncio.sleep(0)
    while not pool._busy:
        os.sched_yield()
    (checker,) = pool._busy
    await pool.close()
    with pytest.raises(TimeoutError):
        await asked
    assert not checker.is_alive


async def test_xml_is_typed_by_the_schema_unless_the_server_is_told_not_to():
    asked = row({"type": "object", "properties": {"year": {"type": "integer"}}}, schema_type="xml")
    (typed,) = await all_verified((asked, "<year>1987</year>"))
    (as_written,) = await all_verified((asked, "<year>1987</year>"), xml_coerce_types=False)
    assert (typed["reward"], as_written["reward"]) == (1.0, 0.0)


def test_without_the_validating_library_the_server_says_what_to_install(monkeypatch):
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "jsonschema" else found(name))
    with pytest.raises(MissingPackageError, match=r"pip install 'rollbook\[schemas\]'"):
        built(StructuredOutputsResourcesServer).build_app()


async def test_rewards_are_averaged_by_what_rows_say_of_themselves():
    facets = [("json", True), ("json", False), ("xml", None)]
    results = [
        {
            "_ng_task_index": at,
            "_ng_rollout_index": 0,
            "reward": float(at),
            "schema_type": form,
            "has_distractors": crowd,
        }
        for at, (form, crowd) in enumerate(facets)
    ]
    async with served(built(StructuredOutputsResourcesServer)) as server:
        means = (await server.ok("/aggregate_metrics", {"verify_responses": results}))["agent_metrics"]
    assert {name: mean for name, mean in means.items() if name.startswith("mean/reward_")} == {
        "mean/reward_json": 0.5,
        "mean/reward_xml": 2.0,
        "mean/reward_has_distractors_true": 0.0,
        "mean/reward_has_distractors_false": 1.0,
    }


def test_an_explanation_is_short_and_can_be_written_down():
    found = fault(Question('{"type": "integer"}', json.dumps("\ud800" * 10_000)))
    assert found.error_type == "validation_error"
    assert len(found.error_message.encode()) <= 1000
