"""Who runs a data set's rows, and whether the servers that rows name fit together."""

import pytest
from omegaconf import OmegaConf

from rollbook.config.instances import (
    agents,
    agents_of,
    attributed_agent,
    environment_servers_of,
    implementation_of,
    model_server_of,
    only_agent,
    resources_server_of,
)
from rollbook.config.routing import (
    check_agents,
    check_dataset_admits,
    check_pairings,
    check_stamp,
    resolve_dataset_agent,
    resolve_task_source,
    resolve_task_sources,
)
from rollbook.errors import InputError, ServerRefNotFoundError


def ref(kind, name):
    return {"type": kind, "name": name}


def verifier(**more):
    return {"resources_servers": {"impl": {"entrypoint": "app.py", "domain": "math", **more}}}


def agent(resources, kind="simple_agent", **more):
    block = {"entrypoint": "app.py", "model_server": ref("responses_api_models", "policy_model"), **more}
    if resources:
        block["resources_server"] = ref("resources_servers", resources)
    return {"responses_api_agents": {kind: block}}


def front(**more):
    return {"environment_servers": {"turn": {"entrypoint": "app.py", **more}}}


def pinned(*names):
    return [
        {"name": f"d{i}", "type": "example", "jsonl_fpath": "d.jsonl", "agent": name} for i, name in enumerate(names)
    ]


CFG = OmegaConf.create(
    {
        "alone": verifier(),
        "alone_agent": agent("alone"),
        "shared": verifier(),
        "first": agent("shared"),
        "second": agent("shared", "tool_agent"),
        "lonely": verifier(),
        "pins": verifier(datasets=pinned("third")),
        "third": agent("pins"),
        "fourth": agent("pins"),
        "torn": verifier(datasets=pinned("first", "second")),
        "strict": verifier(allowed_agents=["tool_agent"]),
        "strict_agent": agent("strict"),
        "choosy": agent(
            None,
            datasets=[
                {"name": "open", "type": "example", "jsonl_fpath": "d"},
                {
                    "name": "ts1",
                    "type": "example",
                    "jsonl_fpath": "d",
                    "allowed_agents": "tool_agent",
                    "taskset": "ts1",
                },
            ],
        ),
        "policy_model": {"responses_api_models": {"openai_model": {"entrypoint": "app.py"}}},
        "front": front(agent_server=ref("responses_api_agents", "alone_agent")),
        "crew": front(members=[ref("responses_api_agents", "first"), ref("responses_api_agents", "second")]),
        "solo": front(resources_server=ref("resources_servers", "shared"), player=ref("responses_api_agents", "first")),
        "led": front(rival=ref("responses_api_agents", "first"), agent_server=ref("responses_api_agents", "second")),
        "empty": front(),
        "environment_server_routes": {"ts": "front", "crew_ts": "crew"},
        "notes": {"a": 1},
    }
)


def test_questions_about_bindings_are_answered_from_the_configuration():
    assert agents(CFG) == ("alone_agent", "first", "second", "third", "fourth", "strict_agent", "choosy")
    assert resources_server_of(CFG, "first") == "shared"
    assert resources_server_of(CFG, "choosy") is None
    assert resources_server_of(CFG, "shared") is None
    assert model_server_of(CFG, "first") == "policy_model"
    assert implementation_of(CFG, "second") == ("responses_api_agents", "tool_agent")
    assert environment_servers_of(CFG, "first") == ("crew", "solo", "led")
    assert environment_servers_of(CFG, "third") == ()
    assert agents_of(CFG, "crew") == ("first", "second")
    assert agents_of(CFG, "led") == ("second", "first")
    assert only_agent(CFG) is None
    assert only_agent(OmegaConf.create({"one": agent("x")})) == "one"


@pytest.mark.parametrize(
    ("server", "attributed"), [("front", "alone_agent"), ("crew", None), ("solo", "first"), ("empty", None)]
)
def test_a_servers_rows_are_counted_under_its_named_or_only_agent(server, attributed):
    assert attributed_agent(CFG, server) == attributed


def test_an_unknown_instance_is_answered_with_close_ones():
    with pytest.raises(ServerRefNotFoundError, match=r"no server instance `thrid`.*Did you mean `third`"):
        implementation_of(CFG, "thrid")


@pytest.mark.parametrize(
    ("declaring", "pin", "taskset", "found"),
    [
        ("first", None, None, "first"),
        ("first", None, "anything", "first"),
        ("alone", None, None, "alone_agent"),
        ("shared", "second", None, "second"),
        ("shared", None, "ts", "alone_agent"),
        ("alone", None, "crew_ts", "alone_agent"),
        ("first", "second", None, "second"),
    ],
)
def test_a_data_set_leads_to_one_agent(declaring, pin, taskset, found):
    assert resolve_dataset_agent(CFG, declaring, pin, taskset) == found


@pytest.mark.parametrize(
    ("declaring", "pin", "taskset", "told"),
    [
        (
            "shared",
            None,
            None,
            r"exactly one agent must be bound to `shared`.*several agents are: first, second; pin one",
        ),
        ("lonely", None, None, r"exactly one agent must be bound to `lonely`.*no agent is; add one"),
        (
            "shared",
            "alone_agent",
            None,
            r"`shared` pins `alone_agent`, whose resources_server is `alone`, not `shared`",
        ),
        ("shared", "secnd", None, r"`shared` pins `secnd`, which is no agent instance\. Did you mean `second`"),
        ("shared", "lonely", None, r"`shared` pins `lonely`, which is no agent instance"),
        ("first", "alone_agent", None, r"`first` pins `alone_agent`"),
        (
            "shared",
            None,
            "nowhere",
            r"no environment server for taskset `nowhere`; add \+\+environment_server_routes\.nowhere=",
        ),
        ("policy_model", None, None, r"`policy_model` is one of responses_api_models"),
    ],
)
def test_a_data_set_that_leads_to_no_single_agent_says_why(declaring, pin, taskset, told):
    with pytest.raises(InputError, match=told):
        resolve_dataset_agent(CFG, declaring, pin, taskset)


@pytest.mark.parametrize(("source", "found"), [("alone", "alone_agent"), ("first", "first"), ("pins", "third")])
def test_a_task_source_leads_to_its_agent(source, found):
    assert resolve_task_source(CFG, source) == found


def test_every_task_source_that_leads_nowhere_is_told_at_once():
    sources = ["alone", "alon", "notes", "policy_model", "torn", "shared"]
    with pytest.raises(InputError) as caught:
        resolve_task_sources(CFG, sources)
    text = str(caught.value)
    assert "`alon`: there is no instance `alon`. Did you mean `alone`" in text
    assert "`notes` is neither an agent nor a resources server" in text
    assert "`policy_model` is neither" in text
    assert "`torn` pin several agents: first, second" in text
    assert "several agents are: first, second" in text
    assert "+agent_map=" in text
    assert "task_source `alone`" not in text


def test_task_sources_lead_to_agents_each_once():
    assert resolve_task_sources(CFG, ["alone", "pins", "alone"]) == {"alone": "alone_agent", "pins": "third"}


def test_unknown_agents_are_told_with_close_ones_or_what_they_are():
    check_agents(CFG, ["first", "second"])
    with pytest.raises(InputError) as caught:
        check_agents(CFG, ["frist", "shared", "first", "frist"])
    text = str(caught.value)
    assert text.count("`frist` is not in the configuration. Did you mean `first`") == 1
    assert "`shared` exists but is not an agent instance" in text


@pytest.mark.parametrize("pair", [("first", "strict"), ("strict_agent", None)])
def test_a_pair_that_a_verifier_does_not_admit_is_refused(pair, monkeypatch):
    with pytest.raises(
        InputError,
        match=r"is a simple_agent; `strict` admits tool_agent.*\+\+allow_unsupported_pairing=true or NEMO_GYM",
    ):
        check_pairings(CFG, [pair])
    monkeypatch.setenv("NEMO_GYM_ALLOW_UNSUPPORTED_PAIRING", "1")
    check_pairings(CFG, [pair])


def test_admitted_pairs_pass():
    check_pairings(CFG, [("second", "strict"), ("first", "shared"), ("first", None)])


@pytest.mark.parametrize(
    ("name", "taskset", "admitted"),
    [
        ("first", "ts1", False),
        ("second", "ts1", True),
        ("choosy", None, False),
        ("first", None, True),
        ("first", "undeclared", True),
        ("choosy", "open", True),
        ("choosy", "undeclared", True),
    ],
)
def test_a_data_set_admits_agents_by_type(name, taskset, admitted):
    if admitted:
        check_dataset_admits(CFG, name, taskset)
    else:
        with pytest.raises(InputError, match="data set `ts1` admits tool_agent"):
            check_dataset_admits(CFG, name, taskset)


@pytest.mark.parametrize(
    "stamp",
    [
        ("front", None, None),
        ("front", "alone_agent", "alone"),
        ("crew", "second", None),
        ("empty", "first", "shared"),
        ("solo", "first", "shared"),
    ],
)
def test_a_stamp_that_fits_passes(stamp):
    check_stamp(CFG, *stamp)


@pytest.mark.parametrize(
    ("stamp", "told"),
    [
        (
            ("frnt", None, None),
            r"there is no environment server `frnt`; there are: front, crew, solo, led, empty\. Did you mean `front`",
        ),
        (("first", None, None), "there is no environment server `first`"),
        (("front", "first", None), "`front` fronts alone_agent, not the row's agent `first`"),
        (("front", None, "shared"), "`front` is bound to `alone`, the row comes from `shared`"),
        (("solo", None, "alone"), "`solo` is bound to `shared`, the row comes from `alone`"),
    ],
)
def test_a_stamp_that_does_not_fit_says_what_would(stamp, told):
    with pytest.raises(InputError, match=told):
        check_stamp(CFG, *stamp)
