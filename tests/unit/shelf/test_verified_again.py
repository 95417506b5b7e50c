"""A result that is sent to be verified again, as it is: what was found the first time is found anew."""

import pytest

from rollbook import ReverifyMode
from rollbook.servers.serving.loading import load_module, served_class
from unit.shelf.calling import COMPONENTS, built, example_rows, message, response, served, tool_call
from unit.shelf.judge import JUDGE, Judge

ANSWER = "\\boxed{B} <answer>5</answer>\nAnswer: B"
OPTIONS = {
    "equivalence_llm_judge": {"judge_model_server": JUDGE, "judge_responses_create_params": {"input": []}},
    "math_with_judge": {
        "judge_model_server": JUDGE,
        "judge_responses_create_params": {"input": []},
        "should_use_judge": False,
        "library_verifier_timeout_seconds": 120,
    },
}
FOUND_BEFORE = {"reward": 0.25, "extracted_answer": "Z", "score": 0.25, "accuracy": True, "library_reward": 0.25}


OF_A_SESSION = {"blackjack", "example_mcp_weather", "example_session_state_mgmt", "wordle"}
NAMES = sorted({folder.name for folder in (COMPONENTS / "environments").iterdir()} - OF_A_SESSION)


@pytest.mark.parametrize("name", NAMES)
async def test_a_result_can_be_verified_again(name):
    path = COMPONENTS / "resources_servers" / name / "app.py"
    server_class = served_class(load_module(path, f"resources_servers.{name}.app"), path)
    assert server_class.config_class().REVERIFY_MODE is ReverifyMode.STATELESS
    judge = Judge("[[A!=B]]", "[[A!=B]]", "[[A!=B]]")
    row = {**example_rows(name)[0], "response": response(tool_call("no_such_tool"), message(ANSWER))}
    async with served(built(server_class, client=judge, **OPTIONS.get(name, {}))) as server:
        first = await server.ok("/verify", row)
        again = await server.ok(
            "/verify", {**first, **{key: FOUND_BEFORE[key] for key in FOUND_BEFORE if key in first}}
        )
    timed = {"unit_tests_time_taken", "metadata"}
    assert {key: first[key] for key in first if key not in timed} == {
        key: again[key] for key in first if key not in timed
    }
