import pytest
from omegaconf import OmegaConf

from rollbook.errors import (
    AgentWithoutEnvironmentServerError,
    AmbiguousEnvironmentServerError,
    ConfigError,
    InputError,
)
from rollbook.plan.directory import Directory
from rollbook.plan.rollouts import Destination

HERE = {"entrypoint": "app.py", "host": "127.0.0.1", "port": 1}


def ref(server_type, name):
    return {"type": server_type, "name": name}


def agent(resources_server=None):
    bound = {"resources_server": ref("resources_servers", resources_server)} if resources_server else {}
    model = {"model_server": ref("responses_api_models", "policy_model")}
    return {"responses_api_agents": {"simple_agent": HERE | bound | model}}


def environment(agent_name):
    return {"environment_servers": {"legacy_agent": HERE | {"agent_server": ref("responses_api_agents", agent_name)}}}


CONFIG = {
    "maths": {"resources_servers": {"maths": HERE | {"domain": "math"}}},
    "picky": {"resources_servers": {"picky": HERE | {"domain": "math", "allowed_agents": ["other_agent"]}}},
    "maths_agent": agent("maths"),
    "picky_agent": agent("picky"),
    "bare_agent": agent(),
    "twice_agent": agent(),
    "maths_environment": environment("maths_agent"),
    "picky_environment": environment("picky_agent"),
    "first": environment("twice_agent"),
    "second": environment("twice_agent"),
    "policy_model": {"responses_api_models": {"openai_model": HERE}},
}


@pytest.fixture
def directory():
    return Directory(OmegaConf.create(CONFIG))


def resolve(directory, *rows):
    return list(directory.resolved(rows))


def test_a_row_with_a_task_source_is_given_its_agent(directory):
    assert resolve(directory, {"task_source": "maths"}) == [
        {"task_source": "maths", "agent_ref": {"name": "maths_agent"}}
    ]


def test_a_row_that_names_its_agent_is_left_as_it_is(directory):
    row = {"agent_ref": {"name": "maths_agent", "type": "kept"}}
    assert resolve(directory, row) == [row]


def test_a_stamped_row_gets_its_servers_agent_and_an_episode_task_does_not(directory):
    stamped = {"_ng_environment_server": "maths_environment"}
    episode = stamped | {"task_id": {"taskset": "t", "task_id": "1"}, "task_input": {}}
    assert resolve(directory, stamped)[0]["agent_ref"] == {"name": "maths_agent"}
    assert resolve(directory, episode) == [episode]


def test_every_name_at_fault_is_in_one_error(directory):
    rows = [
        {"task_source": "mths"},
        {"agent_ref": {"name": "mths_agent"}},
        {"agent_ref": {"name": "maths"}},
        {"agent_ref": {"name": "bare_agent"}},
        {"agent_ref": {"name": "twice_agent"}},
        {"agent_ref": {"name": "picky_agent"}},
        {"_ng_environment_server": "nowhere"},
    ]
    with pytest.raises(InputError) as error:
        resolve(directory, *rows)
    text = str(error.value)
    for part in (
        "Did you mean `maths`",
        "`mths_agent` is not in the configuration",
        "exists but is not an agent instance",
        "no environment server fronts the agent `bare_agent`",
        "fronted by first, second",
        "admits other_agent",
        "no environment server `nowhere`",
    ):
        assert part in text


def test_a_destination_names_server_implementation_and_model(directory):
    assert directory.find("maths_agent", None) == Destination("maths_environment", "legacy_agent", "policy_model")
    assert directory.find("twice_agent", "second").server == "second"
    with pytest.raises(ConfigError):
        directory.find("bare_agent", None)


def test_the_only_agent_is_known_only_when_there_is_one():
    assert Directory(OmegaConf.create(CONFIG)).only_agent is None
    one = {name: CONFIG[name] for name in ("maths", "maths_agent", "maths_environment", "policy_model")}
    assert Directory(OmegaConf.create(one)).only_agent == "maths_agent"


EPISODE = {"task_id": {"taskset": "t", "task_id": "1"}, "task_input": {}}
ADMITTING = {
    "name": "only_others",
    "taskset": "closed",
    "type": "train",
    "jsonl_fpath": "d.jsonl",
    "allowed_agents": "other_agent",
}


def with_datasets(*entries):
    config = OmegaConf.create(CONFIG)
    config.maths_agent.responses_api_agents.simple_agent.datasets = list(entries)
    return Directory(config)


def test_a_verifier_is_asked_about_the_agent_that_its_environment_server_runs(directory):
    with pytest.raises(InputError, match="`picky_agent` is a simple_agent; `picky` admits other_agent"):
        resolve(directory, EPISODE | {"_ng_environment_server": "picky_environment"})


def test_an_environment_servers_own_verifier_is_asked_too():
    config = OmegaConf.create(CONFIG)
    config.maths_environment.environment_servers.legacy_agent.resources_server = ref("resources_servers", "picky")
    with pytest.raises(InputError, match="`maths_agent` is a simple_agent; `picky` admits"):
        resolve(Directory(config), EPISODE | {"_ng_environment_server": "maths_environment"})


@pytest.mark.parametrize("taskset", ["closed", "unknown"])
def test_a_data_set_is_asked_about_the_agent_that_runs_its_episode_tasks(taskset):
    row = {"task_id": {"taskset": taskset, "task_id": "1"}, "task_input": {}}
    row["_ng_environment_server"] = "maths_environment"
    if taskset == "unknown":
        assert resolve(with_datasets(ADMITTING), row) == [row]
        return
    with pytest.raises(InputError, match="`maths_agent` is a simple_agent; data set `only_others` admits other_agent"):
        resolve(with_datasets(ADMITTING), row)


def test_a_list_of_nobody_and_data_sets_that_are_no_list_admit_everybody():
    row = {"agent_ref": {"name": "maths_agent"}}
    assert resolve(with_datasets(ADMITTING | {"allowed_agents": []}), row) == [row]
    config = OmegaConf.create(CONFIG)
    config.maths_agent.responses_api_agents.simple_agent.datasets = "none yet"
    assert resolve(Directory(config), row) == [row]


def test_a_flat_row_meets_every_entry_of_its_agent():
    with pytest.raises(InputError, match="only_others"):
        resolve(with_datasets(ADMITTING), {"agent_ref": {"name": "maths_agent"}})


def test_one_fault_alone_is_raised_as_what_it_is(directory):
    with pytest.raises(AmbiguousEnvironmentServerError, match=r"first, second.*environment_server_name=first"):
        resolve(directory, {"agent_ref": {"name": "twice_agent"}})
    with pytest.raises(AgentWithoutEnvironmentServerError, match="bare_agent"):
        resolve(directory_anew(), {"agent_ref": {"name": "bare_agent"}})


def directory_anew():
    return Directory(OmegaConf.create(CONFIG))


@pytest.mark.parametrize("server", ["first", "second"])
def test_several_servers_may_front_one_agent_whose_rows_say_which(directory, server):
    row = {"agent_ref": {"name": "twice_agent"}, "_ng_environment_server": server}
    assert resolve(directory, row) == [row]
