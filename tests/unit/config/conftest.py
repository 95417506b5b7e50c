"""A folder of its own for every test, and a parser whose ports are counted instead of drawn."""

import itertools
from textwrap import dedent

import pytest

from rollbook.config.addresses import PortSource
from rollbook.config.names import ALLOW_UNSUPPORTED_PAIRING_ENV_VAR_NAME, EXTRA_ROOTS_ENV_VAR_NAMES
from rollbook.config.parser import GlobalConfigDictParser, GlobalConfigDictParserConfig, forget_global_config_dict

COLOURS = """
colours:
  resources_servers:
    colours:
      entrypoint: app.py
      domain: knowledge
      datasets:
      - {name: ex, type: example, jsonl_fpath: resources_servers/colours/data/example.jsonl}
colours_simple_agent:
  responses_api_agents:
    simple_agent:
      entrypoint: app.py
      max_steps: 4
      resources_server: {type: resources_servers, name: colours}
      model_server: {type: responses_api_models, name: policy_model}
"""
MODEL = """
policy_model:
  responses_api_models:
    openai_model:
      entrypoint: app.py
      openai_base_url: ${policy_base_url}
      openai_api_key: ${policy_api_key}
      openai_model: ${policy_model_name}
"""
ENV = """
policy_base_url: http://127.0.0.1:8000/v1
policy_api_key: dummy
policy_model_name: tiny
"""


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for variable in (*EXTRA_ROOTS_ENV_VAR_NAMES, ALLOW_UNSUPPORTED_PAIRING_ENV_VAR_NAME, "NEMO_GYM_CONFIG_DICT"):
        monkeypatch.delenv(variable, raising=False)
    forget_global_config_dict()
    yield tmp_path
    forget_global_config_dict()


@pytest.fixture
def write(here):
    def written(name, text=""):
        path = here / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text), encoding="utf-8")
        return path

    return written


@pytest.fixture
def colours(write):
    write("colours.yaml", COLOURS)
    write("model.yaml", MODEL)
    write("env.yaml", ENV)
    return "+config_paths=[colours.yaml,model.yaml]"


@pytest.fixture
def parse():
    def parsed(*tokens, choose=None, is_free=None, **config):
        numbers = itertools.count(10001)
        ports = PortSource(choose or (lambda *_: next(numbers)), is_free or (lambda *_: True))
        return GlobalConfigDictParser(ports).parse(GlobalConfigDictParserConfig(overrides=list(tokens), **config))

    return parsed
