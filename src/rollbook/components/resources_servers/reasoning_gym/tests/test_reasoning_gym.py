import sys

import pytest

from resources_servers.reasoning_gym import scoring
from resources_servers.reasoning_gym.app import ReasoningGymResourcesServer
from rollbook import MissingPackageError
from unit.shelf.calling import built, example_rows, response, served, shared_rows

NAME = "reasoning_gym"
ROW = example_rows(NAME)[0]
pytest.importorskip("reasoning_gym")


async def verified(row, text):
    async with served(built(ReasoningGymResourcesServer)) as server:
        return await server.ok("/verify", {**row, "response": response(text)})


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("so <answer> 42 </answer>", "42"),
        ("<answer>1</answer> no <answer>2\n3</answer>", "2\n3"),
        (r"<answer>1</answer> \boxed{2}", "1"),
        (r"\boxed{1} \boxed{2}", "1"),
        (r"\boxed{} it is", r"\boxed{} it is"),
        ("<answer>1", "<answer>1"),
        ("just 7", "just 7"),
        ("", ""),
    ],
)
def test_the_answer_is_the_last_tag_else_the_first_box_else_everything(text, answer):
    assert scoring.extracted_answer(text) == answer


@pytest.mark.parametrize("opened", ["<answer>", "\\boxed{", "\\boxed{}", "<answer> \n"])
def test_many_tags_and_boxes_that_stay_open_are_read_in_one_pass(opened):
    assert scoring.extracted_answer(opened * 500_000) == opened * 500_000
    assert scoring.extracted_answer(opened * 500_000 + "</answer>\\boxed{7}<answer>8</answer>") == "8"


@pytest.mark.parametrize("read", [example_rows, shared_rows])
async def test_the_answer_of_a_row_scores_one_in_every_form(read):
    for row in read(NAME):
        for text in (row["answer"], f"Well.\n<answer>{row['answer']}</answer>", rf"\boxed{{{row['answer']}}}"):
            reply = await verified(row, text)
            assert (reply["reward"], reply["score"], reply["extracted_answer"]) == (1.0, 1.0, row["answer"])
            assert reply["task_name"] == row["metadata"]["source_dataset"]


async def test_another_answer_scores_less():
    for row in example_rows(NAME):
        assert (await verified(row, "<answer>certainly not</answer>"))["reward"] < 1.0
        assert (await verified(row, ""))["reward"] < 1.0


@pytest.mark.parametrize(
    ("metadata", "said"),
    [
        ({}, "no metadata.source_dataset"),
        ({"source_dataset": None}, "no metadata.source_dataset"),
        ({"source_dataset": "no_such_generator"}, "'no_such_generator' has no score function"),
    ],
)
async def test_a_row_that_names_no_generator_is_an_error(metadata, said):
    async with served(built(ReasoningGymResourcesServer)) as server:
        reply = await server.post("/verify", {**ROW, "metadata": metadata, "response": response("1")})
    assert reply.status == 500
    assert said in reply.json()


def scoring_with(function, monkeypatch):
    def found(name):
        return function

    monkeypatch.setattr(scoring, "score_function", found)
    return scoring.score_of("1", "any", {})


@pytest.mark.parametrize("scored", [float("nan"), float("inf"), "much"])
def test_a_score_that_is_no_number_counts_nothing(scored, monkeypatch):
    def gives(answer, entry):
        return scored

    assert scoring_with(gives, monkeypatch) == 0.0


def test_what_a_score_function_raises_counts_nothing(monkeypatch):
    def raises(answer, entry):
        raise KeyError("cards")

    assert scoring_with(raises, monkeypatch) == 0.0


def test_without_its_package_the_server_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "reasoning_gym", None)
    with pytest.raises(MissingPackageError, match=r"pip install 'rollbook\[reasoning-gym\]'"):
        built(ReasoningGymResourcesServer).build_app()
