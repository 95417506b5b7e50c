"""What agents need whose harness runs inside of a sandbox."""

import pytest

from rollbook import restricted_network_policy, sandbox_server_url, seed_mcp_servers, verify_agent_response
from rollbook.config.parser import forget_global_config_dict, set_global_config_dict
from rollbook.config.types import ResourcesServerRef
from rollbook.servers.http.inner_error import InnerServerError
from rollbook.servers.kinds.resources_sessions import BaseRunRequest
from rollbook.servers.openai.openai_response import NeMoGymResponse
from unit.servers_kinds.playground import RESOURCES, Entry, Scripted, message, playing, reply_with


class Sum(BaseRunRequest):
    answer: str


BODY = Sum.model_validate({"responses_create_params": {"input": "2+2?"}, "answer": "4"})
RESPONSE = NeMoGymResponse.model_validate(reply_with(message("4")))
TOKEN = {"X-NeMo-Gym-Session-Token": "scoped"}
MCP = {"server_name": "tools", "url_path": "/mcp", "transport": "http", "headers": TOKEN}


def ref(name):
    return ResourcesServerRef(type=RESOURCES, name=name)


@pytest.fixture(autouse=True)
def _no_configuration_is_left():
    yield
    forget_global_config_dict()


async def seeded(reply, **options):
    tools = Scripted({"/seed_session": [reply]})
    async with playing({"tools": Entry(RESOURCES, tools.app)}) as playground:
        set_global_config_dict(playground.client.global_config_dict)
        port = playground.client.global_config_dict.tools.resources_servers.tools.port
        entries = await seed_mcp_servers(
            playground.client, [ref("tools")], BODY, {"session": "mine"}, timeout_s=600, **options
        )
    return entries, port, tools


async def test_a_tool_server_is_used_with_the_token_of_this_session():
    entries, port, tools = await seeded({"mcp": MCP})
    url = f"http://127.0.0.1:{port}/mcp"
    assert entries == {"tools": {"url": url, "headers": TOKEN, "enabled": True, "timeout": 600_000}}
    assert tools.bodies("/seed_session")[0]["answer"] == "4"
    assert tools.cookies == [{"session": "mine"}]


@pytest.mark.parametrize("reply", [{}, {"mcp": None}, {"mcp": {**MCP, "headers": {}}}])
async def test_tools_that_are_anybodys_are_not_used(reply):
    with pytest.raises(ValueError, match="no authenticated MCP"):
        await seeded(reply)


async def test_a_session_that_is_refused_is_an_error():
    with pytest.raises(InnerServerError):
        await seeded((500, {"detail": "no"}))


async def test_a_tool_server_that_no_sandbox_reaches_is_refused_where_it_matters():
    with pytest.raises(ValueError, match="not reachable"):
        await seeded({"mcp": MCP}, require_reachable=True)


async def verified(reply, **options):
    environment = Scripted({"/verify": [reply]})
    async with playing({"math": Entry(RESOURCES, environment.app)}) as playground:
        row = await verify_agent_response(
            playground.client, ref("math"), BODY, RESPONSE, {"session": "mine"}, **options
        )
    return row, environment


def graded(body):
    return {**body, "reward": float(bool(body["response"]["output"])), "parsed": len(body["response"]["output"])}


async def test_a_response_is_scored_by_its_environment():
    row, environment = await verified(graded)
    assert (row["reward"], row["answer"], row["response"]["output"][0]["content"][0]["text"]) == (1.0, "4", "4")
    assert "failure_kind" not in row
    assert environment.cookies == [{"session": "mine"}]


async def test_a_failed_harness_is_scored_as_if_it_had_said_nothing_and_its_words_are_kept():
    row, _ = await verified(graded, force_zero_reward=True)
    assert (row["reward"], row["parsed"], row["failure_kind"]) == (0.0, 0, "agent_run_error")
    assert row["response"] == RESPONSE.model_dump(mode="json")


async def test_a_failed_harness_has_no_reward_even_where_nothing_is_worth_one():
    row, _ = await verified(lambda body: {**body, "reward": 1.0}, force_zero_reward=True)
    assert row["reward"] == 0.0


async def test_a_verdict_that_is_refused_is_an_error():
    with pytest.raises(InnerServerError):
        await verified((500, {"detail": "no"}))


def configured(host):
    block = {"entrypoint": "app.py", "host": host, "port": 8000}
    set_global_config_dict({"policy": {"responses_api_models": {"m": block}}})


def test_an_address_is_that_of_the_configuration():
    configured("10.0.0.2")
    assert sandbox_server_url("policy", require_reachable=True) == "http://10.0.0.2:8000"


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "0.0.0.0"])
def test_an_address_of_this_machine_alone_is_refused_where_it_matters(host):
    configured(host)
    assert sandbox_server_url("policy").endswith(f"{host}:8000")
    with pytest.raises(ValueError, match="not reachable"):
        sandbox_server_url("policy", require_reachable=True)


def test_a_policy_lets_through_each_host_once_and_nothing_else():
    urls = ["http://model.example:8000/v1", "https://tools.example", "http://model.example/again"]
    assert restricted_network_policy("opensandbox", urls) == {
        "defaultAction": "deny",
        "egress": [{"action": "allow", "target": "model.example"}, {"action": "allow", "target": "tools.example"}],
    }


@pytest.mark.parametrize("host", ["localhost", "127.0.0.2", "0.0.0.0", "[::1]", "[::]", ""])
def test_a_policy_for_a_host_that_no_sandbox_reaches_is_refused(host):
    with pytest.raises(ValueError, match="reachable"):
        restricted_network_policy("opensandbox", [f"http://{host}:8000"])


def test_a_policy_that_a_provider_would_not_keep_is_refused():
    with pytest.raises(ValueError, match="OpenSandbox"):
        restricted_network_policy("local", ["http://model.example"])
