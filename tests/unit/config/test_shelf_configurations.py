"""Every configuration on our own shelf can be parsed as it is shipped."""

import pytest

from rollbook.config import catalog
from rollbook.config.instances import agents, server_instances
from rollbook.config.parser import GlobalConfigDictParserConfig
from rollbook.config.roots import PARENT_DIR

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")
NO_MODEL = GlobalConfigDictParserConfig.NO_MODEL_GLOBAL_CONFIG_DICT
VERIFIER = """
verifier:
  resources_servers:
    verifier: {entrypoint: app.py, domain: other}
verifier_old_agent:
  responses_api_agents:
    old_agent:
      entrypoint: app.py
      resources_server: {type: resources_servers, name: verifier}
      model_server: {type: responses_api_models, name: policy_model}
"""


def selectors(listing):
    """Return what a command can select; a base that only others build on has no configuration of its own."""
    found = [(entry.shelf, entry.name) for entry in listing([PARENT_DIR]) if any(entry.path.rglob("*.yaml"))]
    return [pytest.param(shelf, name, id=name) for shelf, name in found]


def path_of(shelf, name):
    return str(catalog.selected_path(shelf, name, [PARENT_DIR]))


@pytest.mark.parametrize(("shelf", "name"), [*selectors(catalog.resources_servers), *selectors(catalog.environments)])
def test_a_shipped_environment_parses_without_a_model(parse, shelf, name):
    cfg = parse(f"+config_paths=[{path_of(shelf, name)}]", initial_global_config_dict=NO_MODEL, offline=True)
    instances = [instance for instance in server_instances(cfg) if instance.implementation != "dummy_model"]
    assert instances
    assert [i.name for i in instances if not (i.dir_path / i.entrypoint).is_file()] == []


@pytest.mark.parametrize(("shelf", "name"), selectors(catalog.models))
def test_a_shipped_model_is_the_policy_model(parse, write, shelf, name):
    write("env.yaml", "policy_base_url: http://127.0.0.1:1/v1\npolicy_api_key: k\npolicy_model_name: m\n")
    cfg = parse(f"+config_paths=[{path_of(shelf, name)}]", offline=True)
    assert list(cfg.policy_model.responses_api_models) == [name]


@pytest.mark.parametrize(("shelf", "name"), selectors(catalog.agents))
def test_a_shipped_agent_takes_the_place_of_another(parse, write, shelf, name):
    write("verifier.yaml", VERIFIER)
    cfg = parse(
        f"+config_paths=[verifier.yaml,{path_of(shelf, name)}]", initial_global_config_dict=NO_MODEL, offline=True
    )
    assert agents(cfg) == (f"verifier_{name}",)
