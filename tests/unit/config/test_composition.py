"""A standalone agent takes the place of the agents of a configuration."""

import pytest

from rollbook.config.instances import agents, resources_server_of
from rollbook.config.parser import get_first_server_config_dict
from rollbook.errors import AgentCompositionError, UnsupportedAgentOverrideError, UnsupportedAgentPairingError

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

STANDALONE = """
tool_agent:
  responses_api_agents:
    tool_agent:
      entrypoint: app.py
      max_steps: 99
      resources_server: {type: resources_servers, name: '???'}
      model_server: {type: responses_api_models, name: other_model}
"""
OWN = "tool_agent.responses_api_agents.tool_agent"


@pytest.fixture
def composed(colours, write):
    write("tool_agent.yaml", STANDALONE)
    return colours.replace("]", ",tool_agent.yaml]")


def product_of(cfg, name="colours_tool_agent"):
    return get_first_server_config_dict(cfg, name)


def test_the_product_keeps_bindings_and_takes_the_rest_from_the_standalone_agent(composed, parse):
    cfg = parse(composed)
    assert agents(cfg) == ("colours_tool_agent",)
    product = product_of(cfg)
    assert product.max_steps == 99
    assert product.resources_server.name == "colours"
    assert product.model_server.name == "policy_model"
    assert cfg.agent_map == {"colours_simple_agent": "colours_tool_agent"}
    assert "tool_agent" not in cfg


def test_data_sets_of_the_replaced_agent_are_kept(composed, parse):
    entry = "[{name: d, type: example, jsonl_fpath: d.jsonl}]"
    cfg = parse(composed, f"+colours_simple_agent.responses_api_agents.simple_agent.datasets={entry}")
    assert product_of(cfg).datasets[0].name == "d"


def test_options_that_name_the_replaced_agent_follow(composed, parse):
    cfg = parse(
        composed,
        "+agent_map={other: colours_simple_agent}",
        "+agent_name=colours_simple_agent",
        "+fan_out={x: [colours_simple_agent, y]}",
    )
    assert cfg.fan_out == {"x": ["colours_tool_agent", "y"]}
    assert cfg.agent_map == {"colours_simple_agent": "colours_tool_agent", "other": "colours_tool_agent"}
    assert cfg.agent_name == "colours_tool_agent"


def test_a_data_set_that_pins_the_replaced_agent_pins_the_product(composed, parse):
    pin = "{name: d, type: example, jsonl_fpath: d, agent: colours_simple_agent}"
    cfg = parse(composed, f"++colours.resources_servers.colours.datasets=[{pin}]")
    assert cfg.colours.resources_servers.colours.datasets[0].agent == "colours_tool_agent"


def test_an_environment_server_of_the_replaced_agent_fronts_the_product(composed, parse):
    ref = "{type: responses_api_agents, name: colours_simple_agent}"
    cfg = parse(composed, f"+front.environment_servers.turn={{entrypoint: app.py, agent_server: {ref}}}")
    assert cfg.front.environment_servers.turn.agent_server.name == "colours_tool_agent"


def test_an_environment_server_of_the_standalone_agent_alone_goes_with_it(composed, write, parse):
    fronting = "{entrypoint: app.py, agent_server: {type: responses_api_agents, name: tool_agent}}"
    write("tool_agent.yaml", f"{STANDALONE}its_own:\n  environment_servers:\n    legacy_agent: {fronting}\n")
    cfg = parse(composed)
    assert "its_own" not in cfg
    assert agents(cfg) == ("colours_tool_agent",)


def test_an_agent_of_the_same_type_keeps_its_name(colours, write, parse):
    write("s.yaml", STANDALONE.replace("tool_agent", "simple_agent"))
    cfg = parse(colours.replace("]", ",s.yaml]"))
    assert agents(cfg) == ("colours_simple_agent",)
    assert product_of(cfg, "colours_simple_agent").max_steps == 99
    assert "agent_map" not in cfg


def test_every_bound_agent_is_replaced_and_one_without_a_model_has_the_standalone_agents(composed, write, parse):
    bound = "{entrypoint: app.py, resources_server: {type: resources_servers, name: colours}}"
    write("second.yaml", f"second:\n  responses_api_agents:\n    simple_agent: {bound}\n")
    other = "+other_model.responses_api_models.openai_model={entrypoint: app.py}"
    cfg = parse(composed.replace("]", ",second.yaml]"), other)
    assert len(agents(cfg)) == 2
    assert {resources_server_of(cfg, agent) for agent in agents(cfg)} == {"colours"}
    assert [product_of(cfg, agent).model_server.name for agent in agents(cfg)] == ["policy_model", "other_model"]


@pytest.mark.parametrize(
    ("token", "key", "value"),
    [
        ("max_steps=3", "max_steps", 3),
        ("+extra=1", "extra", 1),
        ("model_server.name=policy_model", "model_server", None),
    ],
)
def test_overrides_of_the_standalone_agent_reach_the_product(composed, parse, token, key, value):
    product = product_of(parse(composed, f"++{OWN}.{token.removeprefix('+')}"))
    assert key in product
    assert value is None or product[key] == value


def test_an_override_of_the_standalone_agents_model_goes_over_the_kept_one(composed, parse):
    other = "+other_model.responses_api_models.openai_model={entrypoint: app.py}"
    cfg = parse(composed, other, f"++{OWN}.model_server.name=other_model")
    assert product_of(cfg).model_server.name == "other_model"


@pytest.mark.parametrize(
    "token",
    [
        f"++{OWN}.resources_server.type=resources_servers",
        "++tool_agent.note=1",
        "++colours_simple_agent.responses_api_agents.simple_agent.max_steps=3",
    ],
)
def test_an_override_that_would_be_lost_is_refused(composed, parse, token):
    with pytest.raises(UnsupportedAgentOverrideError, match=r"tool_agent\.responses_api_agents\.tool_agent"):
        parse(composed, token)


def test_an_override_of_what_a_replaced_agent_keeps_is_applied(composed, parse):
    other = "+other_model.responses_api_models.openai_model={entrypoint: app.py}"
    cfg = parse(
        composed, other, "++colours_simple_agent.responses_api_agents.simple_agent.model_server.name=other_model"
    )
    assert product_of(cfg).model_server.name == "other_model"


def test_several_standalone_agents_are_refused(composed, write, parse):
    write("second.yaml", STANDALONE.replace("tool_agent", "chat_agent"))
    with pytest.raises(AgentCompositionError, match="several standalone agents: `tool_agent`, `chat_agent`"):
        parse(composed.replace("]", ",second.yaml]"))


def test_a_standalone_agent_needs_something_to_be_bound_to(write, parse):
    write("tool_agent.yaml", STANDALONE)
    with pytest.raises(
        AgentCompositionError, match=r"`tool_agent` has nothing to be bound to.*\+\+tool_agent\.responses"
    ):
        parse("+config_paths=[tool_agent.yaml]")


@pytest.mark.parametrize("admitted", ["[simple_agent]", "simple_agent"])
def test_a_verifier_refuses_an_agent_type_it_does_not_admit(composed, parse, admitted):
    tokens = [composed, f"+colours.resources_servers.colours.allowed_agents={admitted}"]
    with pytest.raises(
        UnsupportedAgentPairingError, match=r"`colours_tool_agent` is a tool_agent; `colours` admits simple_agent"
    ):
        parse(*tokens)
    assert agents(parse(*tokens, "+allow_unsupported_pairing=true")) == ("colours_tool_agent",)
