import pytest

from resources_servers.mcqa.app import MCQAResourcesServer
from unit.shelf.calling import built, example_rows, response, served, shared_rows

ROW = example_rows("mcqa")[0]


async def verified(row, text, **options):
    async with served(built(MCQAResourcesServer, **options)) as server:
        return await server.ok("/verify", {**row, "response": response(text)})


@pytest.mark.parametrize("read", [example_rows, shared_rows])
async def test_the_right_letter_of_a_row_is_worth_one_and_any_other_nothing(read):
    for row in read("mcqa"):
        right = row["expected_answer"]
        wrong = next(letter for option in row["options"] for letter in option if letter != right)
        assert (await verified(row, rf"\boxed{{{right}}}"))["reward"] == 1.0
        assert (await verified(row, rf"\boxed{{{wrong}}}"))["reward"] == 0.0


async def test_the_reply_carries_the_row_and_the_letter():
    reply = await verified(ROW, r"\boxed{C}")
    assert (reply["reward"], reply["extracted_answer"], reply["expected_answer"]) == (0.0, "C", "B")
    assert (reply["uuid"], reply["mask_sample"], reply["failure_kind"]) == (ROW["uuid"], False, None)


async def test_an_empty_response_is_worth_nothing():
    reply = await verified(ROW, "")
    assert (reply["reward"], reply["extracted_answer"]) == (0.0, None)


async def test_the_configured_mode_beats_the_rows():
    assert (await verified(ROW, "Answer: B"))["reward"] == 0.0
    assert (await verified(ROW, "Answer: B", grading_mode="lenient_answer_colon"))["reward"] == 1.0


async def test_the_expected_letter_may_have_any_case():
    assert (await verified({**ROW, "expected_answer": " b "}, r"\boxed{B}"))["reward"] == 1.0


async def test_a_row_may_name_its_own_pattern_and_prefix():
    by_pattern = {**ROW, "template_metadata": {"output_regex": [r"choice (\w)"], "template": 3}}
    by_prefix = {**ROW, "grading_mode": "lenient_answer_colon_md", "template_metadata": {"answer_prefix": "Svar:"}}
    assert (await verified(by_pattern, "choice b"))["reward"] == 1.0
    assert (await verified(by_prefix, "Svar: B"))["reward"] == 1.0


@pytest.mark.parametrize("text", [r"\boxed{B}", "", "choice B"])
async def test_a_row_whose_pattern_does_not_compile_is_masked_whatever_the_response(text):
    reply = await verified({**ROW, "template_metadata": {"output_regex": "choice (\\w"}}, text)
    assert (reply["reward"], reply["mask_sample"], reply["failure_kind"]) == (0.0, True, "verifier_error")
    assert "template_metadata.output_regex: 'choice (\\\\w'" in reply["failure_reason"]


async def test_a_mode_that_does_not_exist_is_refused():
    async with served(built(MCQAResourcesServer)) as client:
        reply = await client.post("/verify", {**ROW, "grading_mode": "loud", "response": response("x")})
    assert reply.status == 422


async def test_saved_responses_can_be_verified_again():
    async with served(built(MCQAResourcesServer)) as client:
        assert (await client.get("/reverify_mode")).json() == "stateless"


async def test_majority_votes_are_counted_over_the_letters():
    def judged(task, repeat, letter, reward):
        return {"_ng_task_index": task, "_ng_rollout_index": repeat, "extracted_answer": letter, "reward": reward}

    results = [judged(0, 0, "B", 1.0), judged(0, 1, "B", 1.0), judged(0, 2, None, 0.0)]
    async with served(built(MCQAResourcesServer)) as client:
        metrics = await client.ok("/aggregate_metrics", {"verify_responses": results})
    assert metrics["agent_metrics"]["majority@3/accuracy"] == 100.0
    assert metrics["key_metrics"]["majority@3/accuracy"] == 100.0
    assert metrics["key_metrics"]["pass@3/accuracy"] == 100.0
    assert metrics["key_metrics"]["mean/reward"] == pytest.approx(2 / 3)
    assert "pass@1/accuracy" not in metrics["key_metrics"]
