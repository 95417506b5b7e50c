import logging

import pytest
from omegaconf import OmegaConf

from rollbook.api.direct_rows import direct_rows
from rollbook.api.rollout_collection import RolloutCollectionHelper
from rollbook.errors import ConfigError, InputError
from rollbook.plan.directory import Directory
from stub import AGENT, ENVIRONMENT, Stub, adding

PROMPT = {"responses_create_params": {"input": "add 1 and 1"}}
CONFIG = OmegaConf.create(Stub().config())


def preprocess(rows, **options):
    return RolloutCollectionHelper().preprocess_examples(rows, global_config_dict=CONFIG, **options)


@pytest.mark.parametrize(
    "names", [{"agent_ref": "somebody_else"}, {"agent_ref": {"name": ["A"]}}, {"task_source": [AGENT]}]
)
def test_the_only_agent_never_runs_a_row_that_names_somebody_in_a_way_that_cannot_be_read(names):
    with pytest.raises(InputError, match="row 1: "):
        preprocess([*adding(1), PROMPT | names])
    with pytest.raises(InputError, match="row 1: "):
        RolloutCollectionHelper.resolve_task_sources([*adding(1), PROMPT | names], CONFIG)


@pytest.mark.parametrize(
    "names",
    [{}, {"agent_ref": {}}, {"agent_ref": None}, {"task_source": None}, {"_ng_environment_server": ENVIRONMENT}],
)
def test_a_row_that_names_no_agent_goes_to_the_only_agent(names):
    (row,) = preprocess([PROMPT | names])
    assert row["agent_ref"] == {"name": AGENT}


def test_repeats_of_a_row_with_an_id_of_its_own_are_refused():
    rows = adding(1, _ng_rollout_id="mine")
    assert preprocess(rows)[0]["_ng_rollout_id"] == "mine"
    with pytest.raises(InputError, match="row 0"):
        preprocess(rows, num_repeats=2)


def test_a_row_that_json_cannot_hold_is_named():
    with pytest.raises(InputError, match="row 1: expected a mapping"):
        preprocess([*adding(1), ["no row"]])


EPISODE = {"task_id": {"taskset": "sums", "task_id": "t"}, "task_input": {"question": "1 + 1"}}


@pytest.mark.parametrize("named", [{}, {"_ng_environment_server": "another"}])
def test_an_episode_task_goes_to_the_server_that_the_configuration_routes_its_taskset_to(named):
    routed = OmegaConf.merge(CONFIG, {"environment_server_routes": {"sums": ENVIRONMENT}})
    rows = RolloutCollectionHelper().preprocess_examples([EPISODE | named], num_repeats=2, global_config_dict=routed)
    assert [row["_ng_environment_server"] for row in rows] == [ENVIRONMENT] * 2
    assert [row["_ng_rollout_index"] for row in rows] == [0, 1]


@pytest.mark.parametrize("config", [None, CONFIG])
def test_an_episode_task_without_a_route_is_left_to_the_call_that_sends_it(config):
    (row,) = RolloutCollectionHelper().preprocess_examples([EPISODE], global_config_dict=config)
    assert row == EPISODE | {"_ng_task_index": 0, "_ng_rollout_index": 0}


def test_an_episode_task_that_names_its_server_keeps_it():
    (row,) = preprocess([EPISODE | {"_ng_environment_server": ENVIRONMENT}])
    assert row["_ng_environment_server"] == ENVIRONMENT


BROKEN = OmegaConf.merge(
    CONFIG, {"environment_server_routes": {"sums": ENVIRONMENT, "lost": "${nowhere.at_all}", "open": "???"}}
)


def episode_of(taskset):
    return {"task_id": {"taskset": taskset, "task_id": "t"}, "task_input": {}, "_ng_rollout_id": taskset}


def test_a_route_that_cannot_be_read_disturbs_no_row_that_goes_another_way():
    rows = [EPISODE, PROMPT, episode_of("open")]
    planned = RolloutCollectionHelper().preprocess_examples(rows, global_config_dict=BROKEN)
    assert [row.get("_ng_environment_server") for row in planned] == [ENVIRONMENT, None, None]
    (sent,) = direct_rows([EPISODE | {"_ng_rollout_id": "e"}], Directory(BROKEN))
    assert sent.row["_ng_environment_server"] == ENVIRONMENT


def test_a_route_that_cannot_be_read_is_an_error_of_the_row_that_needs_it():
    said = r"row 1: `environment_server_routes.lost` cannot be read: .*nowhere\.at_all"
    rows = [episode_of("sums"), episode_of("lost"), episode_of("open")]
    with pytest.raises(InputError, match=said):
        RolloutCollectionHelper().preprocess_examples(rows, global_config_dict=BROKEN)
    with pytest.raises(InputError, match=said) as caught:
        direct_rows(rows, Directory(BROKEN))
    assert "no environment server for taskset 'open': row 2" in str(caught.value)


def test_a_route_is_looked_up_as_often_for_many_rows_as_for_one():
    asked = []
    OmegaConf.register_new_resolver("asked_route", lambda: asked.append(1) or ENVIRONMENT, replace=True)
    config = OmegaConf.merge(CONFIG, {"environment_server_routes": {"sums": "${asked_route:}"}})
    direct_rows([EPISODE | {"_ng_rollout_id": "e"}], Directory(config))
    for_one = len(asked)
    direct_rows([EPISODE | {"_ng_rollout_id": str(n)} for n in range(20)], Directory(config))
    assert len(asked) == 2 * for_one


@pytest.mark.parametrize("task_ids", ["12", b"12", 12])
def test_ids_that_would_be_taken_for_characters_are_refused(task_ids):
    rows = [row | {"task_id": str(n)} for n, row in enumerate(adding(3))]
    with pytest.raises(ConfigError, match="task_ids must be ids"):
        preprocess(rows, task_ids=task_ids)


SOURCED = [PROMPT | {"task_source": AGENT}]


def test_a_configuration_may_be_a_mapping():
    plain = OmegaConf.to_container(CONFIG)
    (row,) = RolloutCollectionHelper().preprocess_examples(SOURCED, global_config_dict=plain)
    mine = [dict(row) for row in SOURCED]
    RolloutCollectionHelper.resolve_task_sources(iter(mine), plain)
    assert row["agent_ref"] == mine[0]["agent_ref"] == {"name": AGENT}


@pytest.mark.parametrize("config", [5, "config.yaml", [AGENT], None])
def test_what_is_no_configuration_is_refused_by_name(config):
    with pytest.raises(ConfigError, match="global_config_dict must be a configuration; found"):
        RolloutCollectionHelper.resolve_task_sources(SOURCED, config)


HELD = {}
HELD["again"] = HELD


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"a": object()}, "is no configuration: `a`: Value 'object'"),
        ({"a": {"b": {1, 2}}}, r"is no configuration: `a\.b`: Value 'set'"),
        ({"a": "${sk-verysecret"}, "is no configuration: `a`: an interpolation that cannot be read$"),
        ({(1, 2): 3}, "is no configuration: Incompatible key type 'tuple'"),
        (HELD, "holds itself, or is nested too deeply"),
    ],
)
def test_a_mapping_that_is_no_configuration_is_refused_by_name_and_place(config, said):
    with pytest.raises(ConfigError, match=f"^global_config_dict {said}"):
        RolloutCollectionHelper.resolve_task_sources(SOURCED, config)


@pytest.mark.parametrize(
    ("examples", "said"),
    [(None, "examples must be rows"), ("abc", "examples must be rows"), ([5], "row 0: expected a mapping, found int")],
)
def test_what_holds_no_rows_leads_to_no_agent(examples, said):
    with pytest.raises(ConfigError, match=said):
        RolloutCollectionHelper.resolve_task_sources(examples, CONFIG)


def test_what_a_person_should_know_of_the_rows_is_logged_once(caplog):
    repeats = {"_default": 1, "typo": 2}
    with caplog.at_level(logging.WARNING):
        RolloutCollectionHelper().preprocess_examples(adding(2), agent_map={AGENT: "another"}, num_repeats=repeats)
    assert [record.getMessage() for record in caplog.records] == [
        "num_repeats lists typo, which no row uses: a typo?",
        f"agents replaced by agent_map: {AGENT} -> another",
    ]
