import pytest

from resources_servers.equivalence_llm_judge.app import LLMJudgeResourcesServer
from resources_servers.equivalence_llm_judge.extraction import compiled, last_match
from resources_servers.equivalence_llm_judge.judging import Labels, judge_request, verdict
from rollbook import NeMoGymResponseCreateParamsNonStreaming
from unit.shelf.calling import built, example_rows, message, response, served
from unit.shelf.judge import JUDGE, Judge

NAME = "equivalence_llm_judge"
ROW = example_rows(NAME)[3]
CUT = {**ROW, "template_metadata": {"output_regex": r"Answer: ([^.]*)"}}
YES, NO = "The same. [[A=B]]", "Not [[A=B]] but another: [[A!=B]]"


async def verified(row, text, *verdicts, **options):
    judge = Judge(*verdicts)
    async with served(built(LLMJudgeResourcesServer, client=judge, judge_model_server=JUDGE, **options)) as server:
        reply = await server.ok("/verify", {**row, "response": response(text)})
    assert judge.replies == []
    return reply, [params.model_dump()["input"] for _, _, params in judge.asked]


async def worth(row, text, *verdicts, **options):
    return (await verified(row, text, *verdicts, **options))[0]["reward"]


@pytest.mark.parametrize(("said", "reward"), [(YES, 1.0), (NO, 0.0), ("I cannot tell.", 0.0)])
async def test_the_reward_is_what_the_judge_says(said, reward):
    for row in example_rows(NAME):
        reply, asked = await verified({**row, "template_metadata": None}, "Slocum", said)
        assert reply["reward"] == reward
        assert all(text in asked[0][-1]["content"] for text in (row["question"], row["expected_answer"], "Slocum"))


@pytest.mark.parametrize(("text", "reason"), [("", "empty_final_answer"), ("x" * 11, "answer_too_long")])
async def test_nobody_is_asked_about_no_answer_or_one_that_is_too_long(text, reason):
    reply, _ = await verified(ROW, text, max_answer_chars=10)
    assert (reply["reward"], reply["failure_reason"], reply["mask_sample"]) == (0.0, reason, False)


async def test_a_rows_own_pattern_beats_the_configured_one_and_its_last_match_counts():
    text = "Answer: Cook. Answer: Slocum"
    reply, _ = await verified(CUT, text, YES, response_extract_regex="(Cook)")
    assert reply["extracted_answer"] == "Slocum"
    reply, _ = await verified(CUT, text, YES, response_extract_regex="(Cook)", use_per_record_regex=False)
    assert reply["extracted_answer"] == "Cook"


async def test_a_long_reference_is_compared_with_the_whole_response():
    reply, _ = await verified({**CUT, "expected_answer": "x" * 121}, "So. Answer: y", NO)
    assert reply["extracted_answer"] == "So. Answer: y"


@pytest.mark.parametrize(
    ("text", "verdicts", "reward"),
    [
        ("Slocum. Answer: S", [NO, YES], 0.5),
        ("Slocum. Answer: S", [NO, NO], 0.0),
        ("It was Slocum.", [YES], 1.0),
        ("It was Slocum.", [NO], 0.0),
        ("Slocum. Answer: Slocum", [YES], 1.0),
        ("Answer: ", [NO], 0.0),
    ],
)
async def test_what_the_rows_pattern_cut_wrongly_may_earn_a_part_with_the_whole_response(text, verdicts, reward):
    assert await worth(CUT, text, *verdicts) == reward


async def test_the_second_chance_can_be_switched_off_and_is_for_a_rows_own_pattern_alone():
    assert await worth(CUT, "Answer: x", NO, check_full_generation_on_fail=False) == 0.0
    assert await worth(ROW, "Answer: x", NO, response_extract_regex="Answer: (.*)") == 0.0


@pytest.mark.parametrize(("second", "reward"), [(YES, 1.0), (NO, -1.0)])
async def test_an_equal_verdict_may_be_asked_for_again_with_the_answers_swapped(second, reward):
    options = {"check_twice_swap": True, "reward_if_swap_fails": -1.0}
    reply, asked = await verified(ROW, "Slocum", YES, second, **options)
    assert reply["reward"] == reward
    first, swapped = (messages[-1]["content"] for messages in asked)
    assert first.index("Joshua Slocum") < first.rindex("Slocum")
    assert swapped.rindex("Joshua Slocum") > first.rindex("Joshua Slocum")
    assert await worth(ROW, "Slocum", NO, **options) == 0.0


async def test_a_judge_that_cannot_be_asked_masks_the_row():
    reply, _ = await verified(ROW, "Slocum", ConnectionError("down"))
    assert (reply["reward"], reply["mask_sample"], reply["failure_kind"]) == (0.0, True, "judge_failed")


@pytest.mark.parametrize("text", ["Answer: x", "Slocum"])
async def test_a_row_whose_pattern_does_not_compile_is_masked(text):
    reply, _ = await verified({**ROW, "template_metadata": {"output_regex": "("}}, text)
    assert (reply["reward"], reply["mask_sample"], reply["failure_kind"]) == (0.0, True, "verifier_error")


async def test_the_question_is_the_rows_or_what_the_user_said_last():
    unasked = {key: value for key, value in ROW.items() if key != "question"}
    _, asked = await verified(unasked, "x", NO)
    assert "sail around the world alone?\n\nGive the answer" in asked[0][-1]["content"]
    _, asked = await verified(unasked, "x", NO, question_extract_regex=r"\A(.*?)$")
    assert "Give the answer" not in asked[0][-1]["content"]


async def test_only_the_last_message_is_the_answer():
    judge = Judge(NO)
    async with served(built(LLMJudgeResourcesServer, client=judge, judge_model_server=JUDGE)) as server:
        body = {**ROW, "response": response("Cook", message("Slocum"))}
        assert (await server.ok("/verify", body))["extracted_answer"] == "Slocum"


def test_a_template_is_filled_once_and_braces_are_text():
    params = NeMoGymResponseCreateParamsNonStreaming(input=[], temperature=0)
    fields = {"question": "{expected_answer}", "expected_answer": "{x}", "generated_answer": "{question}"}
    filled = judge_request(params, "{question}|{expected_answer}|{generated_answer}|{other}", fields, "Judge.")
    assert [item["content"] for item in filled.model_dump()["input"]] == [
        "Judge.",
        "{expected_answer}|{x}|{question}|{other}",
    ]
    assert filled.temperature == 0


@pytest.mark.parametrize(
    ("text", "label"), [("[[no]] so [[yes]]", "[[yes]]"), ("[[yes]] [[no]]", "[[no]]"), ("yes", None), ("", None)]
)
def test_the_last_label_is_the_verdict(text, label):
    assert verdict(text, Labels(equal="[[yes]]", not_equal="[[no]]")) == label


@pytest.mark.parametrize(
    ("pattern", "text", "found"),
    [
        (r"^A: (.*?)$", "A: 1\nA: 2\n", "2"),
        (r"(a)|(b)", "a b", "b"),
        (r"\d+", "1 22", "22"),
        (r"x", "y", None),
        (r"(a+)+$", "a" * 20 + "b", None),
    ],
)
def test_a_patterns_last_match_gives_its_first_filled_group(pattern, text, found):
    assert last_match(compiled(pattern), text) == found


async def test_the_metric_is_the_share_of_answers_without_a_verdict():
    server = built(LLMJudgeResourcesServer, judge_model_server=JUDGE)
    rows = [{"judge_evaluations": [{"verdict_label": None}, {"verdict_label": "[[A=B]]"}]}, {"judge_evaluations": []}]
    assert server.compute_metrics([rows]) == {"judgement_parsing_issue_rate": 50.0}
    assert server.compute_metrics([[{}]]) == {}


async def test_a_saved_result_can_be_verified_again():
    reply, _ = await verified(ROW, "Cook", NO)
    assert await worth(reply, "Slocum", YES) == 1.0
