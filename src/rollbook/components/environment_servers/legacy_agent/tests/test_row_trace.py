"""One row through the default mode, call by call: servers.md §14.2."""

import pytest

from environment_servers.legacy_agent.app import LegacyAgentConfig, LegacyAgentServer
from responses_api_agents.simple_agent.app import SimpleAgent, SimpleAgentConfig
from unit.servers_kinds.playground import (
    AGENTS,
    ENVIRONMENTS,
    MODELS,
    RESOURCES,
    Entry,
    Scripted,
    call,
    message,
    playing,
    reply_with,
)

FRAME = {"host": "h", "port": 1, "entrypoint": "app.py"}
AGENT = "colours_simple_agent"
ROW = {
    "responses_create_params": {"input": [{"role": "user", "content": "Which colour?"}]},
    "_ng_task_index": 3,
    "_ng_rollout_index": 0,
    "agent_ref": {"name": AGENT},
}


class Trace:
    """The default mode's servers."""

    def __init__(self) -> None:
        replies = [reply_with(call("look_up", '{"name":"teal"}'), tokens=1), reply_with(message("teal"), tokens=2)]
        self.model = Scripted({"/v1/responses": replies}, sets_cookie="policy_model")
        script = {
            "/seed_session": [{}],
            "/look_up": [{"hex": 1}],
            "/verify": [lambda body: {**body, "reward": 1.0}],
        }
        self.resources = Scripted(script, sets_cookie="RsClass___colours")

    def servers(self, prefix=""):
        for scripted in (self.model, self.resources):
            scripted.script = {prefix + path: entries for path, entries in scripted.script.items()}
        return {
            "colours_environment_server": Entry(ENVIRONMENTS, self.environment),
            AGENT: Entry(AGENTS, self.agent),
            "colours": Entry(RESOURCES, self.resources.app),
            "policy_model": Entry(MODELS, self.model.app),
        }

    def environment(self, client):
        ref = {"type": "responses_api_agents", "name": AGENT}
        config = LegacyAgentConfig(**FRAME, name="colours_environment_server", agent_server=ref)
        return LegacyAgentServer(config=config, server_client=client)

    def agent(self, client):
        config = SimpleAgentConfig(
            **FRAME,
            name=AGENT,
            max_steps=4,
            resources_server={"type": "resources_servers", "name": "colours"},
            model_server={"type": "responses_api_models", "name": "policy_model"},
        )
        return SimpleAgent(config=config, server_client=client)


@pytest.mark.parametrize(("observed", "prefix"), [(False, ""), (True, "/ng-rollout/3-0")])
async def test_a_row_is_seeded_answered_with_tools_verified_and_relayed(observed, prefix):
    trace = Trace()
    async with playing(trace.servers(prefix), observability_enabled=observed) as playground:
        answer = await playground.post("colours_environment_server", "/run", ROW)
    assert trace.resources.paths() == [prefix + path for path in ("/seed_session", "/look_up", "/verify")]
    assert trace.model.paths() == [f"{prefix}/v1/responses"] * 2
    assert trace.resources.bodies(f"{prefix}/seed_session") == [ROW]
    assert trace.resources.cookies[1]["RsClass___colours"] == "RsClass___colours-1"
    second = trace.model.bodies(f"{prefix}/v1/responses")[1]["input"]
    assert [item.get("type", "message") for item in second] == ["message", "function_call", "function_call_output"]
    assert trace.resources.bodies(f"{prefix}/verify")[0].keys() == {*ROW, "response"}
    response = answer.body["response"]
    kinds = [item["type"] for item in response["output"]]
    assert (answer.status, answer.body["reward"]) == (200, 1.0)
    assert kinds == ["function_call", "function_call_output", "message"]
    assert response["usage"]["total_tokens"] == 6
    assert answer.body["agent_ref"] == {"name": AGENT}
