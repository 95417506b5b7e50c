"""Checks after merging: almost servers, references, pairings, addresses, environment servers."""

import logging
import socket

import pytest

from rollbook.config.addresses import PortSource, port_is_free
from rollbook.config.instances import environment_server_for, environment_servers_of, server_instances
from rollbook.errors import (
    AgentWithoutEnvironmentServerError,
    AlmostServerError,
    AmbiguousEnvironmentServerError,
    ConfigError,
    ConfigInterpolationError,
    ServerRefNotFoundError,
    UnsupportedModelPairingError,
)

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

AGENT = "colours_simple_agent.responses_api_agents.simple_agent"
VERIFIER = "colours.resources_servers.colours"


@pytest.mark.parametrize(
    ("tokens", "problem"),
    [
        ([f"~{VERIFIER}.entrypoint"], f"{VERIFIER}.entrypoint: Field required"),
        ([f"++{VERIFIER}.domain=art"], f"{VERIFIER}.domain: Input should be 'math', 'coding'"),
        ([f"++{VERIFIER}.port=http"], f"{VERIFIER}.port: Input should be a valid integer"),
        ([f"++{VERIFIER}.port=70000"], f"{VERIFIER}.port: Input should be less than or equal to 65535"),
        ([f"++{VERIFIER}.num_workers=0"], f"{VERIFIER}.num_workers: Input should be greater than 0"),
        ([f"++{VERIFIER}.datasets=none"], f"{VERIFIER}.datasets: Input should be a valid list"),
        ([f"++{VERIFIER}.datasets=[{{name: x}}]"], f"{VERIFIER}.datasets[0]: Unable to extract tag"),
        (["+colours.resources_servers.more={entrypoint: app.py}"], "has the keys colours, more; exactly one"),
        (["+colours.note=1"], "colours has the keys resources_servers, note; an instance has exactly one"),
        (["++colours.resources_servers=text"], "colours.resources_servers is no mapping"),
        ([f"++{VERIFIER}=text"], f"{VERIFIER} is no mapping"),
        ([f"~{VERIFIER}"], "colours.resources_servers has the keys none; exactly one"),
    ],
)
def test_a_block_that_only_looks_like_a_server_says_what_is_wrong(colours, parse, tokens, problem):
    with pytest.raises(AlmostServerError) as caught:
        parse(colours, *tokens)
    assert problem in str(caught.value)
    assert "`colours` (in " in str(caught.value)
    assert "++error_on_almost_servers=false" in str(caught.value)


def test_an_almost_server_is_shown_with_its_secrets_masked(colours, parse):
    with pytest.raises(AlmostServerError) as caught:
        parse(colours, f"++{VERIFIER}.judge_api_key=sk-verysecret", f"~{VERIFIER}.domain")
    assert "judge_api_key: '****'" in str(caught.value)


def test_an_almost_server_may_be_let_pass_with_a_warning(colours, parse, caplog):
    with caplog.at_level(logging.WARNING):
        cfg = parse(colours, "+draft.resources_servers.x.entrypoint=app.py", "+error_on_almost_servers=false")
    assert "`draft` (in the overrides) looks like a server and is none" in caplog.text
    assert "draft" not in [instance.name for instance in server_instances(cfg)]


def test_a_mapping_without_a_server_type_is_data(parse):
    assert server_instances(parse("+notes={a: {b: 1}}")) == ()


def test_every_dangling_reference_is_told_with_its_place(colours, parse):
    with pytest.raises(ServerRefNotFoundError) as caught:
        parse(
            colours,
            f"++{AGENT}.model_server.name=polcy_model",
            "+free.deep=[{type: resources_servers, name: nobody}]",
        )
    lines = str(caught.value).splitlines()
    assert len(lines) == 2
    assert f"`{AGENT}.model_server` (in " in lines[0]
    assert "Did you mean `policy_model`?" in lines[0]
    assert "`free.deep[0]` (in the overrides) refers to `nobody`" in lines[1]


def test_a_reference_to_a_resources_server_that_a_root_holds_says_how_to_have_it(colours, parse):
    reference = "+free.server={type: resources_servers, name: mcqa}"
    with pytest.raises(ServerRefNotFoundError, match=r"`mcqa`.*: give --resources-server mcqa beside"):
        parse(colours, reference)
    with pytest.raises(ServerRefNotFoundError) as caught:
        parse(colours, reference.replace("mcqa", "nobody"))
    assert "--resources-server" not in str(caught.value)


def test_a_reference_to_an_instance_of_another_type_says_so(colours, parse):
    with pytest.raises(ServerRefNotFoundError, match=r"`policy_model`.*it is one of responses_api_models"):
        parse(colours, f"++{AGENT}.resources_server.name=policy_model")


def test_an_environment_without_any_model_is_told_how_to_name_one(colours, parse):
    with pytest.raises(ServerRefNotFoundError, match=r"there are: none\. Name a model server with --model-type"):
        parse(colours, "~policy_model")


def test_where_there_is_a_model_a_wrong_reference_is_no_reason_to_name_another(colours, parse):
    with pytest.raises(ServerRefNotFoundError) as caught:
        parse(colours, f"++{AGENT}.model_server.name=zzz")
    assert "--model-type" not in str(caught.value)


@pytest.mark.parametrize("admitted", ["[vllm_model]", "vllm_model"])
def test_a_policy_model_that_a_verifier_does_not_admit_is_refused(colours, parse, admitted):
    with pytest.raises(
        UnsupportedModelPairingError, match=r"`policy_model` is a openai_model; `colours` admits vllm_model"
    ):
        parse(colours, f"+{VERIFIER}.allowed_model_types={admitted}")


def test_the_model_that_is_checked_is_the_one_the_verifiers_agents_ask(colours, parse):
    other = "+other_model.responses_api_models.vllm_model={entrypoint: app.py}"
    tokens = [colours, other, f"++{AGENT}.model_server.name=other_model"]
    parse(*tokens, f"+{VERIFIER}.allowed_model_types=[vllm_model]")
    with pytest.raises(UnsupportedModelPairingError, match="`other_model` is a vllm_model"):
        parse(*tokens, f"+{VERIFIER}.allowed_model_types=[openai_model]")


def test_an_admitted_policy_model_passes(colours, parse):
    parse(colours, f"+{VERIFIER}.allowed_model_types=[vllm_model,openai_model]")


@pytest.mark.parametrize(
    ("variable", "free"), [("1", True), ("yes", True), ("", False), ("0", False), ("False", False)]
)
def test_the_environment_can_admit_everyone(colours, parse, monkeypatch, variable, free):
    monkeypatch.setenv("NEMO_GYM_ALLOW_UNSUPPORTED_PAIRING", variable)
    tokens = [colours, f"+{VERIFIER}.allowed_model_types=[vllm_model]"]
    if free:
        parse(*tokens)
    else:
        with pytest.raises(UnsupportedModelPairingError):
            parse(*tokens)


def test_the_configuration_can_admit_everyone(colours, parse):
    parse(colours, f"+{VERIFIER}.allowed_model_types=[vllm_model]", "+allow_unsupported_pairing=true")


FRONT = """
front:
  environment_servers:
    single_agent_turn:
      entrypoint: app.py
      cleanup_timeout_seconds: 5
      agent_server: {type: responses_api_agents, name: colours_simple_agent}
"""


def test_a_fronted_agent_gets_no_generated_environment_server(colours, parse, write):
    write("front.yaml", FRONT)
    cfg = parse("+config_paths=[colours.yaml,model.yaml,front.yaml]")
    assert environment_servers_of(cfg, "colours_simple_agent") == ("front",)
    assert environment_server_for(cfg, "colours_simple_agent") == "front"
    assert "colours_environment_server" not in cfg


def test_an_agent_fronted_by_several_is_ambiguous_where_one_is_needed(colours, parse, write):
    write("front.yaml", FRONT + FRONT.replace("front:", "second:"))
    cfg = parse("+config_paths=[colours.yaml,model.yaml,front.yaml]")
    with pytest.raises(
        AmbiguousEnvironmentServerError, match=r"fronted by front, second;.*environment_server_name=front"
    ):
        environment_server_for(cfg, "colours_simple_agent")


def test_an_agent_that_nothing_fronts_is_named(colours, parse):
    with pytest.raises(AgentWithoutEnvironmentServerError, match="`nobody`"):
        environment_server_for(parse(colours), "nobody")


def test_generated_environment_servers_can_be_forbidden(colours, parse):
    with pytest.raises(
        AgentWithoutEnvironmentServerError, match=r"(?s)`colours_simple_agent`.*colours_environment_server:"
    ):
        parse(colours, "+error_on_agent_without_environment_server=true")


@pytest.mark.parametrize(
    ("agent", "generated"),
    [
        ("colours_simple_agent", "colours_environment_server"),
        ("my_agent", "my_environment_server"),
        ("simple_agent", "simple_environment_server"),
        ("solver", "simple_agent_environment_server"),
    ],
)
def test_a_generated_environment_server_is_named_after_what_its_agent_is_about(parse, agent, generated):
    cfg = parse(f"+{agent}.responses_api_agents.simple_agent.entrypoint=app.py")
    assert environment_servers_of(cfg, agent) == (generated,)


def test_two_agents_with_one_stem_get_two_environment_servers(parse):
    cfg = parse(*(f"+{name}.responses_api_agents.simple_agent.entrypoint=app.py" for name in ("one", "two")))
    assert environment_servers_of(cfg, "one") == ("simple_agent_environment_server",)
    assert environment_servers_of(cfg, "two") == ("two_environment_server",)


def ports_of(cfg):
    return {instance.name: instance.port for instance in server_instances(cfg)}


def test_given_addresses_are_kept(colours, parse):
    cfg = parse(colours, f"+{VERIFIER}.port=9000", f"+{VERIFIER}.host=0.0.0.0", "+head_server.port=9001")
    assert ports_of(cfg)["colours"] == 9000
    assert cfg.colours.resources_servers.colours.host == "0.0.0.0"
    assert cfg.head_server == {"host": "127.0.0.1", "port": 9001}


def test_the_default_host_goes_to_every_server(colours, parse):
    cfg = parse(colours, "+default_host=10.0.0.1")
    assert {instance.host for instance in server_instances(cfg)} == {"10.0.0.1"}
    assert cfg.head_server.host == "10.0.0.1"


def test_an_absolute_address_is_that_of_the_own_host_name(colours, parse, monkeypatch):
    monkeypatch.setattr(socket, "gethostname", lambda: "node7")
    monkeypatch.setattr(socket, "gethostbyname", {"node7": "10.1.2.3"}.__getitem__)
    assert parse(colours, "+use_absolute_ip=true").head_server.host == "10.1.2.3"


def test_forbidden_given_and_busy_ports_are_passed_over(colours, parse):
    drawn = iter([10001, 10002, 10003, 10004, 10005, 10006, 10006, 10007, 10008])
    cfg = parse(
        colours,
        "+disallowed_ports=[10001]",
        "+head_server.port=10002",
        f"+{VERIFIER}.port=10003",
        choose=lambda *_: next(drawn),
        is_free=lambda _, port: port != 10004,
    )
    assert sorted(ports_of(cfg).values()) == [10003, 10005, 10006, 10007]


def test_the_port_range_is_given_to_the_chooser(colours, parse):
    asked = []

    def choose(low, high):
        asked.append((low, high))
        return low + len(asked)

    parse(colours, "+port_range_low=30000", "+port_range_high=30010", choose=choose)
    assert set(asked) == {(30000, 30010)}


def test_fifty_busy_ports_are_enough(colours, parse):
    tried = []
    with pytest.raises(
        ConfigError, match=r"no free port between 10001 and 20000 on 127\.0\.0\.1 in 50 tries.*port_range_low"
    ):
        parse(colours, is_free=lambda *at: tried.append(at))
    assert len(tried) == 50


def test_a_range_upside_down_is_refused(colours, parse):
    with pytest.raises(ConfigError, match="port_range_low=30000 is above port_range_high=20000"):
        parse(colours, "+port_range_low=30000")


@pytest.mark.parametrize(
    ("token", "told"),
    [
        ("++port_range_low=low", "`port_range_low` is no port"),
        ("++port_range_high=70000", "`port_range_high` is no port"),
        ("++disallowed_ports=8000", "`disallowed_ports` is no list of ports"),
        ("++disallowed_ports=[http]", "`disallowed_ports` is no list of ports"),
        ("++head_server=here", "`head_server` is no mapping"),
    ],
)
def test_address_settings_of_a_wrong_type_are_refused(colours, parse, token, told):
    with pytest.raises(ConfigError, match=told):
        parse(colours, token)


def test_a_machine_without_an_address_of_its_own_is_told_what_to_type(colours, parse, monkeypatch):
    def unknown(name):
        raise socket.gaierror(name)

    monkeypatch.setattr(socket, "gethostname", lambda: "node7")
    monkeypatch.setattr(socket, "gethostbyname", unknown)
    with pytest.raises(ConfigError, match=r"own name node7 has no address; add \+\+default_host"):
        parse(colours, "+use_absolute_ip=true")


def test_a_host_that_cannot_be_resolved_is_reported_as_such_and_not_as_a_busy_port(colours, parse):
    with pytest.raises(ConfigInterpolationError, match="`default_host`"):
        parse(colours, "+default_host='${nowhere}'", is_free=lambda *_: False)


def test_two_servers_on_one_port_are_refused(colours, parse):
    with pytest.raises(ConfigError, match="`colours` and `colours_simple_agent` are both to listen on port 9000"):
        parse(colours, f"+{VERIFIER}.port=9000", f"+{AGENT}.port=9000")


def test_offline_every_open_port_is_minus_one_and_no_socket_is_asked(colours, parse):
    def unasked(*_):
        raise AssertionError

    cfg = parse(colours, offline=True, choose=unasked, is_free=unasked)
    assert set(ports_of(cfg).values()) == {-1}


def test_a_port_in_use_is_not_free():
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        held.listen()
        assert not port_is_free("127.0.0.1", held.getsockname()[1])


def test_a_port_on_another_machine_is_taken_to_be_free():
    assert port_is_free("192.0.2.1", 54321)


def test_a_drawn_port_is_in_the_range():
    assert PortSource().choose(10001, 10002) in {10001, 10002}
