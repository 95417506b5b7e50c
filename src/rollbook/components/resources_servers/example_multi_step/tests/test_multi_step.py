import pytest

from resources_servers.example_multi_step.app import ExampleMultiStepResourcesServer
from unit.shelf.calling import built, example_rows, response, served, shared_rows, tool_call

NAME = "example_multi_step"
ROW = example_rows(NAME)[0]
EXPECTED = ROW["expected_synonym_values"]
TERM = ROW["minefield_label_value"]


def extraction(values):
    return tool_call("extract_synonym_values", synonym_values=values)


async def verified(row, *output):
    async with served(built(ExampleMultiStepResourcesServer)) as server:
        return await server.ok("/verify", {**row, "response": response(*output)})


@pytest.mark.parametrize("read", [example_rows, shared_rows])
async def test_the_values_that_the_tool_tells_in_the_lists_order_earn_the_reward(read):
    async with served(built(ExampleMultiStepResourcesServer)) as server:
        for row in read(NAME):
            values = [
                (await server.ok("/get_synonym_value", {"synonym": synonym}))["synonym_value"]
                for synonym in row["expected_synonyms"]
            ]
            assert await server.ok("/extract_synonym_values", {"synonym_values": values}) == {"success": True}
            for handed_in, reward in ((values, 1.0), (values[1:], 0.0)):
                reply = await server.ok("/verify", {**row, "response": response(extraction(handed_in))})
                assert reply["reward"] == reward


@pytest.mark.parametrize(
    ("values", "overlap", "minefield", "order"),
    [
        (EXPECTED[::-1], 1.0, False, True),
        (EXPECTED[:1], 0.5, False, False),
        ([TERM], 0.0, True, False),
        ([*EXPECTED, TERM], 1.0, True, True),
        ([], 0.0, False, False),
        ([str(value) for value in EXPECTED], 0.0, False, False),
    ],
)
async def test_a_wrong_list_earns_nothing_and_the_reply_says_what_was_wrong(values, overlap, minefield, order):
    reply = await verified(ROW, extraction(values))
    assert (reply["reward"], reply["accuracy"]) == (0.0, False)
    assert (reply["set_overlap"], reply["original_term_minefield_hit"]) == (overlap, minefield)
    assert reply["order_instruction_following_failure"] is order


async def test_the_last_extraction_counts_and_a_whole_number_may_have_a_point():
    assert (await verified(ROW, extraction([1]), extraction([float(value) for value in EXPECTED])))["reward"] == 1.0
    assert (await verified(ROW, extraction(EXPECTED), extraction([1])))["reward"] == 0.0


@pytest.mark.parametrize("arguments", ["{", "[]", "{}", '{"synonym_values": 3}', "[" * 100_000])
async def test_an_extraction_that_cannot_be_read_extracts_nothing(arguments):
    call = {"type": "function_call", "call_id": "c", "name": "extract_synonym_values", "arguments": arguments}
    reply = await verified(ROW, extraction(EXPECTED), call)
    assert (reply["reward"], reply["parsed_synonym_values"]) == (0.0, [])


@pytest.mark.parametrize("added", ["0.5", "1e999", "NaN"])
async def test_a_list_with_a_number_that_is_not_whole_is_right_for_no_row(added):
    for expected in (EXPECTED, []):
        values = ", ".join(map(str, [*expected, added]))
        call = extraction([]) | {"arguments": f'{{"synonym_values": [{values}]}}'}
        reply = await verified({**ROW, "expected_synonym_values": expected}, call)
        assert (reply["reward"], reply["parsed_synonym_values"]) == (0.0, [])


@pytest.mark.parametrize(("value", "reward"), [(2**53 + 1, 1.0), (2**53, 0.0), (10**400, 0.0)])
async def test_a_whole_number_of_any_size_is_compared_to_its_last_digit(value, reward):
    reply = await verified({**ROW, "expected_synonym_values": [2**53 + 1]}, extraction([value]))
    assert (reply["reward"], reply["parsed_synonym_values"]) == (reward, [value])


async def test_a_saved_result_can_be_verified_again():
    assert (await verified(await verified(ROW, "no"), extraction(EXPECTED)))["reward"] == 1.0
