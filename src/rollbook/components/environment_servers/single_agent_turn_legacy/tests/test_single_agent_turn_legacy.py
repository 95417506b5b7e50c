import pytest

from environment_servers.single_agent_turn.tests.turning import ANSWER, ASKED, Turns, real_servers
from environment_servers.single_agent_turn_legacy.app import SingleAgentTurnLegacyServer
from unit.servers_kinds.playground import playing

ROW = {
    "responses_create_params": ASKED,
    "expected_city": "Oslo",
    "agent_ref": {"name": "agent"},
    "task_source": "weather_tasks",
    "_ng_task_index": 7,
    "_ng_rollout_index": 2,
}
TASK_ROW = {"responses_create_params": ASKED, "expected_city": "Oslo"}


async def test_a_row_goes_in_and_a_verified_row_comes_out():
    async with playing(real_servers(SingleAgentTurnLegacyServer)) as playground:
        answer = await playground.post("env", "/run", ROW)
    assert answer.status == 200
    rest = {key: value for key, value in answer.body.items() if key not in {"responses_create_params", "response"}}
    assert rest == {
        "reward": 1.0,
        "mask_sample": False,
        "failure_kind": None,
        "failure_reason": None,
        "asked_cities": ["Oslo"],
    }


NAMES = [
    (ROW, "7-2", 0, "weather_tasks", "7"),
    ({**ROW, "_ng_attempt_index": 3}, "7-2", 3, "weather_tasks", "7"),
    ({**TASK_ROW, "task_id": "t9", "_ng_rollout_id": "mine"}, "mine", 0, "weather", "t9"),
]


@pytest.mark.parametrize(("row", "rollout", "attempt", "taskset", "task"), NAMES)
async def test_the_episode_and_the_task_are_the_rows_own(row, rollout, attempt, taskset, task):
    turns = Turns(SingleAgentTurnLegacyServer)
    await turns.run(row)
    seed = turns.resources.bodies("/seed_session")[0]
    assert seed["episode_id"] == {"rollout_id": rollout, "attempt": attempt}
    assert seed["task_id"] == {"taskset": taskset, "task_id": task}
    assert "expected_city" in seed["task_data"]
    assert not {"agent_ref", "_ng_task_index", "responses_create_params"} & seed["task_data"].keys()


async def test_a_row_that_names_no_rollout_gets_an_id_of_its_own():
    turns = Turns(SingleAgentTurnLegacyServer)
    await turns.run(TASK_ROW)
    await turns.run(TASK_ROW)
    ids = {seed["episode_id"]["rollout_id"] for seed in turns.resources.bodies("/seed_session")}
    assert [len(rollout_id) for rollout_id in ids] == [32, 32]


async def test_a_failed_turn_is_a_row_that_says_so():
    turns = Turns(SingleAgentTurnLegacyServer)
    turns.agent.script[ANSWER] = [(503, "full")]
    answer = await turns.run(ROW)
    assert (answer.status, answer.body) == (
        200,
        {
            "failure_kind": None,
            "_ng_failure_class": "environment_server_failed",
            "_ng_failure_terminal": False,
            "_ng_failure_message": 'agent: POST /ng-rollout/7-2/v1/responses answered 503: "full"',
            "_ng_failure_stage": "agent",
        },
    )


async def test_a_failed_verification_keeps_the_response():
    turns = Turns(SingleAgentTurnLegacyServer)
    turns.resources.script["/verify"] = [(500, "no")]
    row = (await turns.run(ROW)).body
    assert row["_ng_failure_stage"] == "verification"
    assert row["_ng_failure_partial_response"]["output"][0]["content"][0]["text"] == "Rain."


async def test_a_judge_that_could_not_be_asked_gives_a_masked_row_with_its_response():
    async with playing(real_servers(SingleAgentTurnLegacyServer)) as playground:
        row = (await playground.post("env", "/run", {**ROW, "expected_city": "judge"})).body
    assert row["response"]["output"][-1]["content"][0]["text"] == "Rain."
    said = {key: row[key] for key in ("reward", "mask_sample", "failure_kind", "_ng_failure_class")}
    assert said == {
        "reward": 0.0,
        "mask_sample": True,
        "failure_kind": "judge_failed",
        "_ng_failure_class": "judge_failed",
    }
    assert row["_ng_failure_judge_error"] == "weather: no judge"
    assert row["_ng_task_index"] == 7


BAD_ROWS = [
    {"expected_city": "Oslo"},
    {**ROW, "responses_create_params": {"inputs": "misspelt"}},
    {**ROW, "_ng_rollout_id": "7-2-a1"},
    {"episode_id": {"rollout_id": "7-2"}, "task": {}, "task_input": {}},
]


@pytest.mark.parametrize("row", BAD_ROWS)
async def test_what_is_no_row_is_422_and_nothing_is_opened(row):
    turns = Turns(SingleAgentTurnLegacyServer)
    answer = await turns.run(row)
    assert answer.status == 422
    assert turns.resources.asked == turns.agent.asked == []
