"""Which environment server a direct call sends an episode task to: the one that a full evaluation would."""

import pytest
from omegaconf import OmegaConf

from rollbook.api.direct_rows import direct_rows
from rollbook.api.rollout_collection import RolloutCollectionHelper
from rollbook.errors import InputError
from rollbook.inputs.examples import rows_of
from rollbook.plan.directory import Directory
from rollbook.plan.expand import Expansion
from rollbook.plan.options import PlanOptions

HERE = {"entrypoint": "app.py", "host": "127.0.0.1", "port": 1}


def ref(kind, name):
    return {"type": kind, "name": name}


def environment(agent):
    return {"environment_servers": {"legacy_agent": HERE | {"agent_server": ref("responses_api_agents", agent)}}}


def agent(server):
    return {"responses_api_agents": {"simple_agent": HERE | {"resources_server": ref("resources_servers", server)}}}


ROUTES = {"sums": "turns"}
CONFIG = {
    "maths": {"resources_servers": {"maths": HERE | {"domain": "math"}}},
    "solver": agent("maths"),
    "other": agent("maths"),
    "turns": environment("solver"),
    "plain": environment("other"),
    "environment_server_routes": ROUTES,
}
EPISODE = {"task_id": {"taskset": "sums", "task_id": "t"}, "task_input": {"n": 1}}
NUMBERED = {"_ng_task_index": 0, "_ng_rollout_index": 0}


def directory():
    return Directory(OmegaConf.create(CONFIG))


def planned(row):
    """Return what a full evaluation plans of `row`."""
    expansion = Expansion(PlanOptions(deployment_routes=ROUTES))
    (found,) = directory().resolved(expansion.rows(rows_of([row])))
    return found


def called(row, **options):
    (found,) = direct_rows([row | NUMBERED], directory(), **options)
    return found


@pytest.mark.parametrize(
    "names", [{}, {"task_source": "maths"}, {"agent_ref": {"name": "solver"}}, {"agent_ref": {}, "task_source": None}]
)
def test_an_episode_task_goes_by_its_taskset_whatever_else_its_row_names(names):
    found = called(EPISODE | names)
    assert found.row == planned(EPISODE | names)
    assert (found.rollout.server, found.rollout.is_episode) == ("turns", True)


def test_an_agent_that_its_tasksets_server_does_not_run_is_refused_by_both():
    row = EPISODE | {"agent_ref": {"name": "other"}}
    for ask in (planned, called):
        with pytest.raises(InputError, match="`turns` fronts solver, not the row's agent `other`"):
            ask(row)


@pytest.mark.parametrize("names", [{}, {"task_source": "maths"}, {"agent_ref": {"name": "other"}}])
def test_an_episode_task_without_a_route_is_refused_whoever_it_names(names):
    lost = {"task_id": {"taskset": "lost", "task_id": "t"}, "task_input": {}, **names} | NUMBERED
    with pytest.raises(InputError, match=r"no environment server for taskset .lost.: row 0, row 2.*_ng_environment_s"):
        direct_rows([lost, EPISODE | NUMBERED, lost], directory())


def test_a_server_that_the_row_or_the_call_names_needs_no_route():
    lost = {"task_id": {"taskset": "lost", "task_id": "t"}, "task_input": {}, "task_source": "maths"}
    assert called(lost | {"_ng_environment_server": "plain"}).rollout.server == "plain"
    assert called(lost, server="turns").rollout.server == "turns"


@pytest.mark.parametrize(
    ("names", "call", "server"),
    [
        ({"_ng_environment_server": "turns"}, {"server": "plain"}, "plain"),
        ({"_ng_environment_server": "plain"}, {}, "plain"),
        ({}, {"server": "plain"}, "plain"),
        ({}, {}, "turns"),
    ],
)
def test_what_the_call_names_goes_before_what_the_row_names_and_that_before_the_deployments_route(names, call, server):
    assert called(EPISODE | names, **call).rollout.server == server
    if not call:
        assert planned(EPISODE | names)["_ng_environment_server"] == server


def test_what_preprocessing_leaves_open_is_routed_by_the_call_that_sends_it():
    (row,) = RolloutCollectionHelper().preprocess_examples([EPISODE | {"task_source": "maths"}])
    assert called(row).rollout.server == "turns"


@pytest.mark.parametrize(
    ("task_id", "said"),
    [
        ({"taskset": "sums"}, "row 1: `task_id.task_id` of an episode task must be text, found None"),
        ({"taskset": "", "task_id": "t"}, "row 1: `task_id.taskset` of an episode task must be text, found ''"),
        ({"taskset": "sums", "task_id": 7}, "row 1: `task_id.task_id` of an episode task must be text, found 7"),
    ],
)
def test_an_episode_task_that_no_server_could_name_is_refused_before_anything_is_sent(task_id, said):
    odd = {"task_id": task_id, "task_input": {}, "_ng_environment_server": "turns"}
    with pytest.raises(InputError, match=said):
        direct_rows([row | NUMBERED for row in (EPISODE, odd)], directory())


def test_a_task_source_gives_an_episode_task_no_agent():
    rows = [EPISODE | {"task_source": "maths"}, {"task_source": "solver"}]
    RolloutCollectionHelper.resolve_task_sources(rows, OmegaConf.create(CONFIG))
    assert rows == [EPISODE | {"task_source": "maths"}, {"task_source": "solver", "agent_ref": {"name": "solver"}}]
    assert called(rows[0]).rollout.server == "turns"


def test_preprocessing_leaves_a_task_without_a_route_open_whatever_fronts_its_agent():
    config = OmegaConf.create(CONFIG | {"turns_too": environment("solver"), "environment_server_routes": {}})
    row = EPISODE | {"agent_ref": {"name": "solver"}}
    (planned_row,) = RolloutCollectionHelper().preprocess_examples([row], global_config_dict=config)
    assert planned_row == row | NUMBERED
    with pytest.raises(InputError, match=r"no environment server for taskset .sums.: row 0"):
        direct_rows([planned_row], Directory(config))
