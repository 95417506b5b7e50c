"""What an environment of the shelf says of itself is what its configuration does."""

import pytest

from rollbook.config import catalog
from rollbook.config.instances import server_instances
from rollbook.config.manifest import COMPOSITION, read_manifest
from rollbook.config.names import AGENTS, ENVIRONMENT_SERVERS, MODELS, RESOURCES_SERVERS
from rollbook.config.parser import GlobalConfigDictParserConfig
from rollbook.config.roots import PARENT_DIR

NO_MODEL = GlobalConfigDictParserConfig.NO_MODEL_GLOBAL_CONFIG_DICT
ENVIRONMENTS = {entry.name: entry for entry in catalog.environments([PARENT_DIR])}
JUDGES = [servers.name for servers in catalog.resources_servers([PARENT_DIR]) if (servers.path / "configs").is_dir()]
WITH_A_JUDGE = [name for name, entry in ENVIRONMENTS.items() if "own_judge" in entry.flavors]


@pytest.fixture
def composed(parse):
    """Return the servers that a selector's configuration has, by kind, without generating any."""

    def servers(selector):
        path = catalog.selected_path(catalog.Shelf.ENVIRONMENT, selector, [PARENT_DIR])
        judge = {f"judge_{key}": "none" for key in ("base_url", "api_key", "model_name")}
        strict = {"error_on_agent_without_environment_server": True}
        initial = {**NO_MODEL, **judge, **strict}
        cfg = parse(f"+config_paths=[{path}]", initial_global_config_dict=initial, offline=True)
        found = server_instances(cfg)
        return {
            kind: {one.name: one for one in found if one.server_type == kind}
            for kind in (RESOURCES_SERVERS, AGENTS, MODELS, ENVIRONMENT_SERVERS)
        }

    return servers


def test_every_resources_server_of_the_shelf_stands_in_an_environment():
    judged = {read_manifest(entry.path / "manifest.yaml").resources_server for entry in ENVIRONMENTS.values()}
    assert sorted(judged) == JUDGES


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_a_manifest_says_what_the_configuration_does(name, composed):
    manifest = read_manifest(ENVIRONMENTS[name].path / "manifest.yaml")
    servers = composed(name)
    [judge], [agent] = servers[RESOURCES_SERVERS].values(), servers[AGENTS].values()
    does = {
        "resources_server": judge.implementation,
        "agent_server": agent.implementation,
        "model_server": agent.settings["model_server"]["name"],
        "dataset_owner": judge.name,
        "datasets": [{"num_repeats": 1, **one} for one in judge.settings["datasets"]],
    }
    says = manifest.model_dump(include={*COMPOSITION}, exclude_none=True)
    says["datasets"] = [dict(one) for one in says["datasets"]]
    assert says == does
    assert (manifest.name, manifest.kind, manifest.domain) == (name, "environment", judge.settings["domain"])


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_an_environment_fronts_its_agent_itself(name, composed):
    servers = composed(name)
    [agent], [front] = servers[AGENTS], servers[ENVIRONMENT_SERVERS].values()
    assert (front.name, front.settings["agent_server"]["name"]) == (f"{name}_environment_server", agent)


@pytest.mark.parametrize("name", WITH_A_JUDGE)
def test_a_judge_can_be_a_model_of_its_own(name, composed):
    servers = composed(f"{name}/own_judge")
    assert {*servers[MODELS]} >= {"judge_model"}
    assert servers[RESOURCES_SERVERS][name].settings["judge_model_server"]["name"] == "judge_model"
