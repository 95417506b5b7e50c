import asyncio

import pytest

from environment_servers.single_agent_turn.tests.turning import ANSWER, ASKED, Turns, echoes, real_servers
from unit.servers_kinds.playground import EPISODE, TASK, message, playing, reply_with

TASK_INPUT = {"responses_create_params": ASKED, "task_data": {"expected_city": "Oslo"}}
REQUEST = {"episode_id": EPISODE, "task": {"task_id": TASK, "task_input": TASK_INPUT}}
IDENTITY = {"episode_id": EPISODE, "task_id": TASK}


async def test_a_turn_with_the_real_agent_calls_tools_in_the_environments_session_and_is_verified():
    async with playing(real_servers()) as playground:
        answer = await playground.post("env", "/run", REQUEST)
    result = answer.body["result"]
    assert answer.status == 200
    assert {key: answer.body[key] for key in ("episode_id", "task_id", "failure")} == {**IDENTITY, "failure": None}
    assert [item["type"] for item in result["response"]["output"]] == [
        "function_call",
        "function_call_output",
        "message",
    ]
    rest = {key: value for key, value in result.items() if key not in {"responses_create_params", "response"}}
    assert rest == {
        "reward": 1.0,
        "mask_sample": False,
        "failure_kind": None,
        "failure_reason": None,
        "asked_cities": ["Oslo"],
        "ng_agent_observations": None,
    }


async def test_the_steps_are_taken_in_order_with_ids_of_their_own():
    turns = Turns()
    await turns.run(REQUEST)
    assert turns.resources.paths() == ["/seed_session", "/verify", "/close_session"]
    assert turns.agent.paths() == ["/v1/agent_sessions", ANSWER, "/v1/agent_sessions/close"]
    seed = turns.resources.bodies("/seed_session")[0]
    session = seed["resources_session_id"]
    assert session.startswith("resources-session-")
    assert seed == {"resources_session_id": session, **IDENTITY, "task_data": {"expected_city": "Oslo"}}
    assert turns.resources.bodies("/close_session") == [{"resources_session_id": session, "episode_id": EPISODE}]
    assert turns.agent.bodies(ANSWER) == [ASKED]
    assert turns.resources.bodies("/verify")[0].keys() == {"expected_city", "responses_create_params", "response"}


async def test_the_agent_is_given_the_environments_address_and_cookies():
    turns = Turns()
    await turns.run(REQUEST)
    seed = turns.agent.bodies("/v1/agent_sessions")[0]
    access = seed["tool_accesses"][0]
    assert access.pop("base_url").startswith("http://127.0.0.1:")
    assert access == {
        "kind": "direct_http",
        "name": "resources_http",
        "required": True,
        "cookies": {"weather": "weather-1"},
        "headers": {},
    }
    assert seed["agent_session_id"].startswith("agent-session-")
    assert turns.agent.cookies == [{}, {"agent": "agent-1"}, {"agent": "agent-2"}]


@pytest.mark.parametrize(("given", "seen"), [(None, "weather-1"), ({"weather": "tools-9"}, "tools-9")])
async def test_the_verifier_sees_the_cookies_that_the_agent_ended_with(given, seen):
    turns = Turns()
    turns.agent.script["/v1/agent_sessions/close"] = [
        lambda body: {"agent_session_id": body["agent_session_id"], "resources_cookies": given}
    ]
    await turns.run(REQUEST)
    assert turns.resources.cookies[1] == {"weather": seen}


async def test_what_the_agent_saw_stands_in_the_result_and_no_key_of_the_collector_does():
    turns = Turns()
    bundle = {"source": "colours", "records": [{"kind": "mood", "tone": 1}], "gaps": []}
    turns.agent.script["/v1/agent_sessions/close"] = [
        lambda body: {"agent_session_id": body["agent_session_id"], "agent_observations": bundle}
    ]
    result = (await turns.run(REQUEST)).body["result"]
    assert result["ng_agent_observations"] == bundle
    assert result["expected_city"] == "Oslo"
    assert not [key for key in result if key.startswith("_ng_")]


async def test_an_attempt_and_a_capturing_agent_stand_in_the_path_of_the_answer():
    turns = Turns(agent_block={"token_id_capture": True})
    path = "/ng-rollout/7-2-a3/training-token-capture/v1/responses"
    turns.agent.script = {**turns.agent.script, path: [reply_with(message("Rain."))]}
    answer = await turns.run({**REQUEST, "episode_id": {**EPISODE, "attempt": 3}})
    assert turns.agent.paths()[1] == path
    assert answer.body["failure"] is None


MCP = {"server_name": "weather", "url_path": "/mcp", "transport": "http", "headers": {"x-token": "t"}}
TRANSPORTS = [
    (["mcp"], [("mcp", True)]),
    (["direct_http", "mcp"], [("direct_http", False), ("mcp", False)]),
    (["direct_http"], [("direct_http", True)]),
]


@pytest.mark.parametrize(("transports", "offered"), TRANSPORTS)
async def test_the_only_transport_is_a_required_one(transports, offered):
    turns = Turns(resources_tool_transports=transports)
    turns.resources.script["/seed_session"] = [
        lambda body: {"resources_session_id": body["resources_session_id"], "resources_tools": MCP}
    ]
    await turns.run(REQUEST)
    accesses = turns.agent.bodies("/v1/agent_sessions")[0]["tool_accesses"]
    assert [(access["kind"], access["required"]) for access in accesses] == offered
    connections = [access["connection"] for access in accesses if access["kind"] == "mcp"]
    for connection in connections:
        assert connection["url"].endswith("/mcp")
        assert connection["headers"] == {"x-token": "t"}


SEED, OPEN, SHUT, VERIFY = "/seed_session", "/v1/agent_sessions", "/v1/agent_sessions/close", "/verify"
JUDGED = {"failure_kind": "judge_failed", "failure_reason": "no judge", "_ng_failure_class": "judge_failed"}
FAILURES = [
    ("resources", SEED, (500, "no"), "seed", False, 'weather: POST /seed_session answered 500: "no"'),
    ("resources", SEED, (404, "no"), "seed", True, 'weather: POST /seed_session answered 404: "no"'),
    ("resources", SEED, {"resources_session_id": "x"}, "seed", True, "POST /seed_session answered for another session"),
    ("resources", SEED, {}, "seed", True, "weather: POST /seed_session answered something else: 1 validation error"),
    ("agent", OPEN, (409, {"detail": "is closed"}), "seed", True, "agent: POST /v1/agent_sessions answered 409"),
    ("agent", OPEN, (429, "slow"), "seed", False, "agent: POST /v1/agent_sessions answered 429"),
    ("agent", ANSWER, (408, "late"), "agent", False, "agent: POST /ng-rollout/7-2/v1/responses answered 408"),
    ("agent", ANSWER, (425, "early"), "agent", False, "answered 425"),
    ("agent", ANSWER, (503, "full"), "agent", False, "answered 503"),
    ("agent", ANSWER, (401, "who"), "agent", True, "answered 401"),
    ("agent", ANSWER, (200, b"<html>"), "agent", True, "answered something else"),
    ("agent", SHUT, (500, "busy"), "agent", False, "agent: POST /v1/agent_sessions/close answered 500"),
    ("resources", VERIFY, (502, "no"), "verification", False, "weather: POST /verify answered 502"),
    ("resources", VERIFY, (422, "no"), "verification", True, "weather: POST /verify answered 422"),
    ("resources", VERIFY, {"reward": 1.0}, "verification", True, "POST /verify answered no verified row"),
    ("resources", VERIFY, lambda body: {**body, **JUDGED}, "verification", False, "weather: no judge"),
]


@pytest.mark.parametrize("case", FAILURES, ids=lambda case: f"{case[1]} {case[5]}")
async def test_a_step_that_fails_says_where_and_whether_it_may_pass(case):
    peer, path, said, stage, terminal, reason = case
    turns = Turns()
    getattr(turns, peer).script[path] = [said]
    answer = await turns.run(REQUEST)
    failure = answer.body["failure"]
    assert (answer.status, answer.body["result"]) == (200, None)
    assert (failure["stage"], failure["terminal"]) == (stage, terminal)
    assert reason in failure["failure_reason"]
    assert ("partial_response" in failure) == (path in {SHUT, VERIFY})
    assert turns.resources.paths()[-1] == "/close_session"
    opened = "/v1/agent_sessions" in turns.agent.paths()
    assert opened == ("/v1/agent_sessions/close" in turns.agent.paths())


async def test_an_environment_without_a_session_cookie_cannot_be_used():
    turns = Turns()
    turns.resources.sets_cookie = None
    failure = (await turns.run(REQUEST)).body["failure"]
    assert "set no session cookie" in failure["failure_reason"]
    assert failure["terminal"]


async def test_tools_over_mcp_alone_need_an_environment_that_offers_them():
    failure = (await Turns(resources_tool_transports=["mcp"]).run(REQUEST)).body["failure"]
    assert "offers no tools over MCP" in failure["failure_reason"]


async def test_a_close_that_fails_is_tried_again_when_the_episode_is_cleaned_up():
    turns = Turns()
    turns.agent.script[SHUT] = [(500, "busy"), echoes("agent_session_id")]
    answer = await turns.run(REQUEST)
    assert answer.body["failure"]["stage"] == "agent"
    assert turns.agent.paths().count(SHUT) == 2


async def test_an_episode_closed_at_the_end_takes_no_harm_from_a_close_that_fails():
    turns = Turns()
    turns.resources.script["/close_session"] = [(500, "no")]
    assert (await turns.run(REQUEST)).body["failure"] is None


async def test_the_environment_aggregates():
    turns = Turns()
    turns.resources.script["/aggregate_metrics"] = [{"agent_metrics": {"own": 1}}]
    answer = await turns.run({"verify_responses": []}, "/aggregate_metrics")
    assert answer.body["agent_metrics"] == {"own": 1}


async def test_an_answer_that_never_comes_ends_the_episode_and_both_sessions():
    turns = Turns(default_episode_timeout_seconds=0.5)
    turns.agent.script[ANSWER] = [asyncio.Event()]
    answer = await turns.run(REQUEST)
    assert answer.body["failure"] == {"failure_reason": "Episode timed out", "terminal": False, "failure_kind": None}
    assert turns.agent.paths()[-1] == SHUT
    assert turns.resources.paths() == ["/seed_session", "/close_session"]
