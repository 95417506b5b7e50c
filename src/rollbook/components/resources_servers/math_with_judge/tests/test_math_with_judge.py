import importlib.util
from pathlib import Path

import pytest

from resources_servers.math_with_judge.app import MathWithJudgeResourcesServer, without_delimiters
from resources_servers.math_with_judge.judging import judge_request, says_equal
from resources_servers.math_with_judge.workers import WorkerPool
from rollbook import MissingPackageError, NeMoGymResponse, NeMoGymResponseCreateParamsNonStreaming
from unit.shelf.calling import built, example_rows, message, response, served, shared_rows
from unit.shelf.judge import JUDGE, Judge

NAME = "math_with_judge"
ROW = example_rows(NAME)[0]
QUICK = Path(__file__).with_name("scripted_comparison.py")
pytest.importorskip("math_verify")


def server(judge=None):
    if judge is None:
        return built(MathWithJudgeResourcesServer, should_use_judge=False)
    environment = built(MathWithJudgeResourcesServer, client=judge, judge_model_server=JUDGE)
    environment._workers = WorkerPool(30.0, 1, QUICK)
    return environment


async def verified(text, judge):
    async with served(server(judge)) as math:
        return await math.ok("/verify", {**ROW, "response": response(text)})


@pytest.mark.parametrize("read", [example_rows, shared_rows])
async def test_the_boxed_answer_of_a_row_is_worth_one_and_another_nothing(read):
    async with served(server()) as math:
        for row in read(NAME):
            answer = without_delimiters(row["expected_answer"])
            right = await math.ok("/verify", {**row, "response": response(rf"It is \boxed{{{answer}}}.")})
            wrong = await math.ok("/verify", {**row, "response": response(r"\boxed{-987654}")})
            assert (right["reward"], right["library_reward"], right["extracted_answer"]) == (1.0, 1.0, answer)
            assert (wrong["reward"], wrong["judge_evaluations"]) == (0.0, None)


@pytest.mark.parametrize("text", ["24", r"\boxed{}", r"\boxed{ }", r"\boxed{24", ""])
async def test_without_a_filled_box_nobody_is_asked(text):
    judge = Judge()
    environment = server(judge)
    async with served(environment) as math:
        reply = await math.ok("/verify", {**ROW, "response": response(text)})
        assert environment.workers.pids == frozenset()
    assert (reply["reward"], reply["library_reward"], reply["extracted_answer"]) == (0.0, 0.0, None)
    assert judge.asked == []


async def test_the_judge_is_not_asked_where_the_library_says_equal():
    judge = Judge()
    assert (await verified(r"\boxed{24}", judge))["reward"] == 1.0
    assert judge.asked == []


@pytest.mark.parametrize(
    ("replies", "reward"),
    [
        (["[[A=B]]", "yes: [[A=B]]"], 1.0),
        (["[[A=B]]", "[[A!=B]]"], 0.0),
        (["[[A=B]]", "who knows"], 0.0),
        (["[[A!=B]]"], 0.0),
        (["who knows"], 0.0),
        ([response()], 0.0),
    ],
)
async def test_the_judge_must_say_equal_in_both_orders(replies, reward):
    judge = Judge(*replies)
    reply = await verified(r"\boxed{two dozen}", judge)
    assert (reply["reward"], reply["library_reward"]) == (reward, 0.0)
    assert len(reply["judge_evaluations"]) == len(judge.asked) == len(replies)
    assert judge.replies == []


async def test_the_judge_sees_the_problem_and_both_answers_swapped_the_second_time():
    judge = Judge("[[A=B]]", "[[A=B]]")
    reply = await verified(r"\boxed{two dozen}", judge)
    texts = [asked.input[1].content for _, _, asked in judge.asked]
    assert [(name, path) for name, path, _ in judge.asked] == [("judge", "/v1/responses")] * 2
    assert all(ROW["question"] in text for text in texts)
    assert "Answer A:\n24\n\nAnswer B:\ntwo dozen" in texts[0]
    assert "Answer A:\ntwo dozen\n\nAnswer B:\n24" in texts[1]
    assert reply["judge_evaluations"][1]["responses_create_params"]["input"][1]["content"] == texts[1]


@pytest.mark.parametrize("failure", [ConnectionError("refused"), TimeoutError("late")])
async def test_a_judge_that_cannot_be_asked_masks_the_row(failure):
    reply = await verified(r"\boxed{two dozen}", Judge(failure))
    assert (reply["reward"], reply["mask_sample"], reply["failure_kind"]) == (0.0, True, "judge_failed")
    assert type(failure).__name__ in reply["_ng_failure_judge_error"]


@pytest.mark.parametrize(
    ("text", "equal"),
    [
        ("[[A=B]]", True),
        ("so [[A=B]], not [[A!=B]]", True),
        ("[[A!=B]] or [[A=B]]", False),
        ("[[A!=B]]", False),
        ("A=B", False),
        ("", False),
    ],
)
def test_the_first_label_is_the_verdict(text, equal):
    assert says_equal(NeMoGymResponse.model_validate(response(text))) is equal


def test_only_the_last_part_of_the_last_message_is_read():
    parts = [*message("[[A=B]]")["content"], *message("[[A!=B]]")["content"]]
    assert not says_equal(NeMoGymResponse.model_validate(response({**message(""), "content": parts})))
    assert says_equal(NeMoGymResponse.model_validate(response("[[A!=B]]", "[[A=B]]")))
    call = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
    assert not says_equal(NeMoGymResponse.model_validate(response("[[A=B]]", call)))


def test_a_judges_request_keeps_its_settings():
    params = NeMoGymResponseCreateParamsNonStreaming(input=[], temperature=0.5, max_output_tokens=9)
    asked = judge_request(params, "q {x}", "a", "{b}")
    assert (asked.temperature, asked.max_output_tokens, params.input) == (0.5, 9, [])
    assert "q {x}" in asked.input[1].content
    assert asked.input[1].content.endswith("{b}")


def test_a_judge_without_a_server_is_refused():
    with pytest.raises(ValueError, match="judge_model_server is not set"):
        built(MathWithJudgeResourcesServer)


def test_without_its_package_the_server_says_what_to_install(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", {}.get)
    with pytest.raises(MissingPackageError, match=r"pip install 'rollbook\[math\]'"):
        server().build_app()


async def test_the_processes_end_with_the_server():
    environment = server()
    async with served(environment) as math:
        await math.ok("/verify", {**ROW, "response": response(r"\boxed{24}")})
        pool = environment.workers
        assert len(pool.pids) == 1
    assert pool.pids == frozenset()


async def test_majority_votes_are_counted_over_the_boxed_answers():
    results = [
        {"_ng_task_index": 0, "_ng_rollout_index": repeat, "extracted_answer": answer, "reward": float(answer == "24")}
        for repeat, answer in enumerate(["24", "24", "5"])
    ]
    async with served(server()) as math:
        metrics = await math.ok("/aggregate_metrics", {"verify_responses": results})
    assert metrics["key_metrics"]["majority@3/accuracy"] == 100.0
