import pytest

from resources_servers.gpqa_diamond.app import GPQADiamondResourcesServer
from unit.shelf.calling import built, example_rows, response, served, shared_rows

NAME = "gpqa_diamond"
ROW = {**example_rows(NAME)[0], "expected_answer": "C"}


async def verified(row, text):
    async with served(built(GPQADiamondResourcesServer)) as server:
        return await server.ok("/verify", {**row, "response": response(text)})


@pytest.mark.parametrize("read", [example_rows, shared_rows])
@pytest.mark.parametrize("given", ["Because.\nAnswer: {}", r"\boxed{{{}}}"])
async def test_the_right_letter_of_a_row_is_worth_one_and_any_other_nothing(read, given):
    for row in read(NAME):
        right = row["expected_answer"]
        assert (await verified(row, given.format(right)))["reward"] == 1.0
        assert (await verified(row, given.format("D" if right != "D" else "A")))["reward"] == 0.0


@pytest.mark.parametrize(
    ("text", "letter"),
    [
        ("answer: c", "C"),
        ("Answer: A\nFinal Answer: C", "C"),
        ("Answer: C\nAnswer: A", "A"),
        (r"Answer: C \boxed{A}", "A"),
        (r"Answer: \boxed{C", "C"),
        (r"\boxed{\text{C}}", "C"),
        (r"\boxed{C: 3/4}", "C"),
        ("**Answer:** C", "C"),
        ("Answer:\nC) 3/4", "C"),
        ("answer: c.", "C"),
        ("answer: a bit unclear", None),
        ("Answer: E", None),
        (r"\boxed{E}", None),
        ("Answer: Carbon", None),
        ("the answer is C", None),
        ("Answer: (C)", None),
        ("", None),
    ],
)
async def test_the_box_is_read_first_and_then_the_label(text, letter):
    reply = await verified(ROW, text)
    assert (reply["extracted_answer"], reply["reward"]) == (letter, float(letter == "C"))


async def test_the_rows_own_grading_mode_is_not_looked_at():
    row = {**ROW, "grading_mode": "strict_single_letter_boxed", "template_metadata": {"output_regex": "("}}
    assert (await verified(row, "Answer: C"))["reward"] == 1.0


async def test_a_row_that_lists_no_options_has_four():
    assert (await verified({**ROW, "options": []}, "Answer: C"))["reward"] == 1.0
    assert (await verified({**ROW, "options": []}, "Answer: F"))["extracted_answer"] is None


async def test_a_saved_result_can_be_verified_again():
    assert (await verified(await verified(ROW, "Answer: A"), "Answer: C"))["reward"] == 1.0
