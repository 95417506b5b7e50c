import pytest

from resources_servers.string_match.app import StringMatchResourcesServer
from resources_servers.string_match.comparing import agreement
from resources_servers.string_match.extraction import ExtractionMode, extracted_answer
from unit.shelf.calling import built, example_rows, response, served, shared_rows

NAME = "string_match"
ROW = example_rows(NAME)[0]
GIVEN = {
    "boxed": r"It is \boxed{%s}.",
    "final_answer": "So.\nFinal answer: %s",
    "last_line": "So.\n%s",
    "full_response": "%s",
}


async def verified(row, text):
    async with served(built(StringMatchResourcesServer)) as server:
        return await server.ok("/verify", {**row, "response": response(text)})


@pytest.mark.parametrize("read", [example_rows, shared_rows])
async def test_the_expected_answer_given_as_the_row_asks_is_worth_one_and_another_nothing(read):
    for row in read(NAME):
        given = GIVEN[row.get("extraction_mode", "final_answer")]
        assert (await verified(row, given % row["expected_answer"]))["reward"] == 1.0
        assert (await verified(row, given % "something else"))["reward"] == 0.0


async def test_the_reply_carries_the_row_and_the_answer_and_can_be_verified_again():
    reply = await verified({**ROW, "source": "timetable"}, "Final answer: 85 min")
    assert (reply["reward"], reply["extracted_answer"], reply["source"]) == (0.0, "85 min", "timetable")
    assert (await verified(reply, "Answer: 85"))["reward"] == 1.0


async def test_a_response_without_text_is_worth_nothing():
    reply = await verified({**ROW, "extraction_mode": "full_response"}, "")
    assert (reply["reward"], reply["extracted_answer"]) == (0.0, None)


async def test_a_way_that_does_not_exist_is_refused():
    async with served(built(StringMatchResourcesServer)) as server:
        reply = await server.post("/verify", {**ROW, "extraction_mode": "loud", "response": response("x")})
    assert reply.status == 422


@pytest.mark.parametrize(
    ("mode", "text", "answer"),
    [
        ("boxed", r"\boxed{1} or \boxed{\text{two}}", "two"),
        ("boxed", r"\boxed{\frac{1}{2}}", r"\frac{1}{2}"),
        ("boxed", "15", None),
        ("boxed", r"\boxed{15", None),
        ("final_answer", "Final answer: 1\nfinal ANSWER: 15\nGoodbye.", "15"),
        ("final_answer", "Answer:\n15", "15"),
        ("final_answer", "**Final answer:** 15", "15"),
        ("final_answer", r"\boxed{15}", "15"),
        ("final_answer", "\\boxed{15}\nFinal answer: 3", "3"),
        ("final_answer", "the final answer is 15", None),
        ("last_line", "15\nand so on\n  \n", "and so on"),
        ("full_response", " a\nb ", "a\nb"),
        ("full_response", " \n", None),
    ],
)
def test_each_way_finds_its_own_answer(mode, text, answer):
    assert extracted_answer(text, ExtractionMode(mode)) == answer


@pytest.mark.parametrize(
    ("answer", "expected", "worth"),
    [
        ("paris.", "Paris", 1.0),
        ('"Paris"', "Paris", 1.0),
        ("\uff30\uff41\uff52\uff49\uff53", "Paris", 1.0),
        ("a \t b", "a b", 1.0),
        ("Paris, France", "Paris", 0.0),
        ("42.0", "42", 1.0),
        ("-0.0", "0", 1.0),
        ("1e3", "1,000", 1.0),
        ("1,00", "100", 0.0),
        ("1_0", "10", 0.0),
        ("$x$", "x", 1.0),
        (r"\(\mathrm{x}\)", "x", 1.0),
        (r"\text{a \textbf{b}}", "a b", 1.0),
        ("b, a", "a,b", 0.0),
        ("a;b", "a, b", 1.0),
        ("Ohio, texas", "OH, TX", 1.0),
        ("d.c", "District of Columbia", 0.0),
        ("99", "100", 0.98),
        ("101", "100", 0.98),
        ("98.9", "100", 0.0),
        ("-100", "100", 0.0),
        ("0.001", "0", 0.0),
        ("5 km", "5", 0.98),
        ("5km", "5 m", 0.98),
        ("30^\\circ", "30°", 0.98),
        ("5 miles", "5", 0.0),
        ("x km", "x", 1.0),
        ("x%", "x", 0.0),
        ("\u20ac", "kg", 0.0),
        ("%", "kg", 0.0),
        ("50%", "50", 0.98),
        (r"5\%", "5%", 1.0),
        (r"a\%", "a%", 1.0),
        (".", ".", 1.0),
        (".", "!", 0.0),
        (".", "%", 0.0),
        ('"!"', '"?"', 0.0),
        ("9" * 400, "8" * 400, 0.0),
        ("inf", "1e999", 0.0),
        ("nan", "nan", 1.0),
        ("", "x", 0.0),
        ("five", "5", 0.0),
    ],
)
def test_an_answer_is_worth_as_much_as_it_agrees(answer, expected, worth):
    assert agreement(answer, expected, case_sensitive=False) == worth


@pytest.mark.parametrize(("answer", "worth"), [(" Paris ", 1.0), ("paris", 0.0), ("Paris.", 0.0), ("“Paris”", 0.0)])
def test_where_case_matters_only_the_text_itself_is_right(answer, worth):
    assert agreement(answer, "Paris", case_sensitive=True) == worth


@pytest.mark.parametrize("part", ["answer:", r"\boxed{", "1,", r"\text{", "9", "\u0661", "()\n"])
def test_megabytes_of_anything_are_judged(part):
    text = part * (1_000_000 // len(part)) + "}" * 200_000
    for mode in ExtractionMode:
        answer = extracted_answer(text, mode)
        assert answer is None or agreement(answer, "85", case_sensitive=False) == 0.0
