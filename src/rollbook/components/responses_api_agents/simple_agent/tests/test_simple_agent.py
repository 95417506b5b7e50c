import pytest
from fastapi import Request

from responses_api_agents.simple_agent.app import SimpleAgent, SimpleAgentRunRequest, SimpleAgentVerifyResponse
from responses_api_agents.simple_agent.tests.bench import ASKED, CLOSE, ROW, SEED, TEAL, Bench, direct, short
from unit.servers_kinds.playground import call, message, reply_with, thought


async def test_tools_run_until_the_model_answers_and_all_of_it_is_the_output():
    bench = Bench(
        reply_with(thought("hm"), TEAL, tokens=5),
        reply_with(message("teal"), tokens=7),
        tools={"/look_up": [{"hex": "#008080"}]},
    )
    answer = await bench.post("/v1/responses")
    assert bench.inputs() == [["user"], ["user", "reasoning", "call look_up", 'output {"hex":"#008080"}']]
    assert bench.tools.asked == [("/look_up", {"name": "teal"})]
    assert [short(item) for item in answer.body["output"]] == [
        "reasoning",
        "call look_up",
        'output {"hex":"#008080"}',
        "assistant",
    ]
    assert answer.body["usage"]["total_tokens"] == 24
    assert answer.cookies.keys() == {"model", "colours", "SimpleAgent___agent"}


async def test_a_request_keeps_its_parameters_at_every_call():
    bench = Bench(reply_with(TEAL), reply_with(message("teal")), tools={"/look_up": [{}]})
    asked = {"input": [{"role": "user", "content": "x"}], "temperature": 0.5, "instructions": "be brief"}
    await bench.post("/v1/responses", asked)
    for body in bench.model.bodies("/v1/responses"):
        assert body.keys() == {"input", "temperature", "instructions"}


TOOL_ANSWERS = [
    ('{"name":"teal"}', (200, b'"quoted"'), '"quoted"'),
    ('{"name":"teal"}', (500, "ValueError('no')"), "\"ValueError('no')\""),
    ('{"name":"teal"}', (422, {"detail": []}), '{"detail":[]}'),
    ('{"name":"teal"}', (200, b"caf\xe9"), "caf\ufffd"),
    ("[1, 2]", (200, b"list"), "list"),
]


@pytest.mark.parametrize(("arguments", "said", "output"), TOOL_ANSWERS)
async def test_whatever_a_tool_answers_is_text_for_the_model(arguments, said, output):
    bench = Bench(reply_with(call("look_up", arguments)), reply_with(message("x")), tools={"/look_up": [said]})
    answer = await bench.post("/v1/responses")
    assert answer.body["output"][1]["output"] == output


@pytest.mark.parametrize(("max_steps", "model_calls", "tool_calls"), [(1, 1, 1), (2, 2, 2), (None, 3, 2), (0, 3, 2)])
async def test_steps_are_counted_by_model_calls_and_looked_at_after_the_tools(max_steps, model_calls, tool_calls):
    bench = Bench(
        reply_with(TEAL), reply_with(TEAL), reply_with(message("x")), tools={"/look_up": [{}]}, max_steps=max_steps
    )
    answer = await bench.post("/v1/responses")
    assert (len(bench.model.asked), len(bench.tools.asked)) == (model_calls, tool_calls)
    assert len(answer.body["output"]) == model_calls + tool_calls


async def test_calls_run_one_after_the_other_and_carry_the_tools_cookies():
    bench = Bench(
        reply_with(call("a", "{}", "c1"), call("b", "{}", "c2")),
        reply_with(message("x")),
        tools={"/a": [{}], "/b": [{}]},
    )
    await bench.post("/v1/responses")
    assert bench.tools.paths() == ["/a", "/b"]
    assert bench.tools.cookies == [{}, {"colours": "colours-1"}]
    assert bench.model.cookies == [{}, {"model": "model-1"}]


UNFINISHED = [
    ([], "empty_output", "incomplete"),
    ([thought("hm")], "incomplete_reasoning", "incomplete"),
    ([message("x")], None, None),
    ([message("")], None, None),
]


@pytest.mark.parametrize(("output", "reason", "status"), UNFINISHED)
async def test_a_response_with_neither_message_nor_call_says_why_it_is_none(output, reason, status):
    answer = await Bench(reply_with(*output, metadata={"kept": "yes"})).post("/v1/responses")
    assert answer.body["status"] == status
    assert answer.body["metadata"].get("ng_termination_reason") == reason
    assert ("ng_termination_message" in answer.body["metadata"]) == (reason is not None)
    assert answer.body["metadata"]["kept"] == "yes"


async def test_an_incomplete_response_ends_the_loop_with_its_calls_unanswered():
    bench = Bench(reply_with(TEAL, incomplete_details={"reason": "max_output_tokens"}), tools={"/look_up": [{}]})
    answer = await bench.post("/v1/responses")
    assert [short(item) for item in answer.body["output"]] == ["call look_up"]
    assert answer.body["metadata"] is None
    assert bench.tools.asked == []


MODEL_FAULTS = [
    ((429, {"detail": "slow down"}), "Hit an exception in SimpleAgent___agent calling an inner server: b'"),
    ((200, b"<html>"), "RuntimeError(\"the model server 'model' answered no response"),
    ({"id": "resp_1"}, "RuntimeError(\"the model server 'model' answered no response"),
]


@pytest.mark.parametrize(("said", "text"), MODEL_FAULTS)
async def test_a_models_error_ends_the_request(said, text):
    answer = await Bench(said).post("/v1/responses")
    assert answer.status == 500
    assert answer.body.startswith(text)


async def test_token_ids_come_through_the_loop():
    tokens = {"prompt_token_ids": [1, 2], "generation_token_ids": [3], "generation_log_probs": [-0.5]}
    answer = await Bench(reply_with({**message("x"), **tokens})).post("/v1/responses")
    assert {key: answer.body["output"][0][key] for key in tokens} == tokens


def verifies(body):
    return {**body, "reward": 1.0, "extracted": "teal"}


async def test_a_row_is_seeded_answered_and_verified_with_the_environments_cookies():
    bench = Bench(
        reply_with(TEAL),
        reply_with(message("teal")),
        tools={"/seed_session": [{}], "/look_up": [{}], "/verify": [verifies]},
    )
    answer = await bench.post("/run", ROW)
    assert bench.tools.paths() == ["/seed_session", "/look_up", "/verify"]
    assert bench.tools.bodies("/seed_session") == [ROW]
    assert bench.tools.bodies("/verify")[0].keys() == {*ROW, "response"}
    assert bench.tools.cookies[1]["colours"] == "colours-1"
    assert bench.tools.cookies[2]["colours"] == "colours-2"
    assert (answer.status, answer.body["reward"], answer.body["extracted"]) == (200, 1.0, "teal")
    assert short(answer.body["response"]["output"][0]) == "call look_up"


async def test_with_observability_every_call_of_a_row_is_behind_its_rollout():
    bench = Bench()
    prefix = "/ng-rollout/3-0"
    bench.model.script = {f"{prefix}/v1/responses": [reply_with(message("teal"))]}
    bench.tools.script = {f"{prefix}/seed_session": [{}], f"{prefix}/verify": [verifies]}
    answer = await bench.post("/run", ROW, observability_enabled=True)
    assert answer.status == 200
    assert bench.model.paths() == [f"{prefix}/v1/responses"]
    assert bench.tools.paths() == [f"{prefix}/seed_session", f"{prefix}/verify"]


async def test_a_judge_failure_passes_through_as_the_row_that_it_is():
    failed = {"reward": 0.0, "mask_sample": True, "failure_kind": "judge_failed", "_ng_failure_class": "judge_failed"}
    bench = Bench(
        reply_with(message("teal")), tools={"/seed_session": [{}], "/verify": [lambda body: {**body, **failed}]}
    )
    answer = await bench.post("/run", ROW)
    assert {key: answer.body[key] for key in failed} == failed


async def verified_by(reply, agent=SimpleAgent):
    bench = Bench(reply_with(message("teal")), tools={"/seed_session": [{}], "/verify": [reply]}, agent=agent)
    return await bench.post("/run", ROW)


async def test_what_a_verifier_wrote_goes_on_as_it_came():
    answer = await verified_by(lambda body: {**body, "reward": 1, "large": 2.50, "aside": None})
    assert list(answer.body) == [*ROW, "response", "reward", "large", "aside"]
    assert "mask_sample" not in answer.body


@pytest.mark.parametrize("reward", [{}, {"reward": "much"}, {"reward": None}], ids=["none", "text", "null"])
async def test_a_verified_row_without_a_number_as_its_reward_is_refused(reward):
    answer = await verified_by(lambda body: {**body, **reward})
    assert (answer.status, "reward" in str(answer.body)) == (500, True)


async def test_a_verifiers_reply_that_is_no_json_is_refused():
    assert (await verified_by(b'{"reward": NaN}')).status == 500


class Doubling(SimpleAgent):
    async def run(self, request: Request, body: SimpleAgentRunRequest) -> SimpleAgentVerifyResponse:
        verified = await super().run(request, body)
        texts = [item.content[0].text for item in verified.response.output]
        return verified.model_copy(update={"reward": verified.reward * 2, "texts": texts})


async def test_an_agent_that_extends_run_gets_the_verified_row_as_an_object():
    answer = await verified_by(verifies, Doubling)
    assert (answer.body["reward"], answer.body["texts"]) == (2.0, ["teal"])


async def test_without_verification_the_reward_is_the_configured_one():
    bench = Bench(
        reply_with(message("teal")),
        tools={"/seed_session": [{}]},
        skip_verification=True,
        skip_verification_reward=0.25,
    )
    answer = await bench.post("/run", ROW)
    assert (answer.body["reward"], answer.body["verification_skipped"], answer.body["expected"]) == (0.25, True, "teal")
    assert bench.tools.paths() == ["/seed_session"]


@pytest.mark.parametrize("failing", ["/seed_session", "/verify"])
async def test_an_environments_error_ends_the_row(failing):
    tools = {"/seed_session": [{}], "/verify": [verifies], failing: [(500, "ValueError('no')")]}
    answer = await Bench(reply_with(message("teal")), tools=tools).post("/run", ROW)
    assert (answer.status, answer.body) == (
        500,
        "Hit an exception in SimpleAgent___agent calling an inner server: b'\"ValueError(\\'no\\')\"'",
    )


METRICS = {
    "group_level_metrics": [],
    "agent_metrics": {"own": 1},
    "key_metrics": {},
    "perf_summary": None,
    "repeat_level_metrics": [],
}


@pytest.mark.parametrize(
    ("config", "own", "asked"),
    [({}, {"own": 1}, 1), ({"skip_verification": True}, {}, 0), ({"resources_server": None}, {}, 0)],
)
async def test_the_environment_aggregates_unless_nothing_was_verified(config, own, asked):
    bench = Bench(tools={"/aggregate_metrics": [METRICS]}, **config)
    answer = await bench.post("/aggregate_metrics", {"verify_responses": []})
    assert answer.body["agent_metrics"] == own
    assert len(bench.tools.asked) == asked


@pytest.mark.parametrize(
    ("config", "path", "body", "text"),
    [
        ({"resources_server": None}, "/run", ROW, "has no resources_server"),
        ({"execute_tools": False}, "/run", ROW, "has execute_tools: false"),
        ({"execute_tools": False}, "/v1/responses", ASKED, "has execute_tools: false"),
    ],
)
async def test_what_the_configuration_does_not_allow_is_said(config, path, body, text):
    answer = await Bench(reply_with(message("x")), **config).post(path, body)
    assert answer.status == 400
    assert text in answer.body["detail"]


async def test_in_a_session_tools_are_called_directly_and_the_close_gives_their_cookies_back():
    bench = Bench(
        reply_with(TEAL), reply_with(message("teal")), tools={"/look_up": [{"hex": 1}]}, resources_server=None
    )
    async with bench.playing() as playground:
        access = direct(playground, cookies={"colours": "colours-0"}, headers={"x-own": "1"})
        seeded = await playground.post("agent", "/v1/agent_sessions", {**SEED, "tool_accesses": [access]})
        answer = await playground.post("agent", "/v1/responses", ASKED, cookies=seeded.cookies)
        closed = await playground.post("agent", "/v1/agent_sessions/close", CLOSE, cookies=seeded.cookies)
    assert answer.body["output"][1]["output"] == '{"hex":1}'
    assert bench.tools.cookies == [{"colours": "colours-0"}]
    assert "colours" not in answer.cookies
    assert closed.body["resources_cookies"] == {"colours": "colours-1"}


async def test_in_a_session_calls_may_stay_unanswered():
    bench = Bench(reply_with(TEAL), execute_tools=False)
    async with bench.playing() as playground:
        seeded = await playground.post("agent", "/v1/agent_sessions", SEED)
        answer = await playground.post("agent", "/v1/responses", ASKED, cookies=seeded.cookies)
    assert [short(item) for item in answer.body["output"]] == ["call look_up"]


async def test_in_a_session_without_tools_a_call_is_an_error():
    bench = Bench(reply_with(TEAL))
    async with bench.playing() as playground:
        seeded = await playground.post("agent", "/v1/agent_sessions", SEED)
        answer = await playground.post("agent", "/v1/responses", ASKED, cookies=seeded.cookies)
    assert (answer.status, "has no tools here" in answer.body) == (500, True)


MCP = {"kind": "mcp", "name": "m", "required": False, "connection": {"url": "http://h/mcp"}}
SANDBOX = {"connection": {"provider_config_ref": "p", "descriptor": {}}, "workdir": "/w"}
DIRECT = {"kind": "direct_http", "name": "d", "required": True, "base_url": "http://h:1"}


@pytest.mark.parametrize(
    ("seed", "status"),
    [
        ({"tool_accesses": [DIRECT, MCP]}, 200),
        ({"tool_accesses": [{**MCP, "required": True}]}, 422),
        ({"tool_accesses": [DIRECT, {**DIRECT, "name": "e"}]}, 422),
        ({"sandbox_access": SANDBOX}, 422),
    ],
)
async def test_a_session_that_needs_what_the_agent_cannot_use_is_refused(seed, status):
    assert (await Bench().post("/v1/agent_sessions", {**SEED, **seed})).status == status
