"""A component of a test's own, with data sets that its configuration declares."""

import json
from pathlib import Path

from omegaconf import OmegaConf

from rollbook.config.parser import GlobalConfigDictParser, GlobalConfigDictParserConfig

ENTRY = {"type": "train", "license": "MIT"}


def question(text, **fields):
    return {"responses_create_params": {"input": [{"role": "user", "content": text}]}, **fields}


def write_rows(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def read_rows(path):
    return [json.loads(line) for line in Path(path).read_bytes().splitlines()]


def sums(datasets, **more):
    """Return a configuration of the resources server `sums`, with an agent, that declares `datasets`."""
    server = {"entrypoint": "app.py", "domain": "math", "datasets": datasets}
    refs = {
        "resources_server": {"type": "resources_servers", "name": "sums"},
        "model_server": {"type": "responses_api_models", "name": "policy_model"},
    }
    return {
        "sums": {"resources_servers": {"sums": server}},
        "sums_simple_agent": {"responses_api_agents": {"simple_agent": {"entrypoint": "app.py", **refs}}},
        "policy_model": {"responses_api_models": {"simulated_model": {"entrypoint": "app.py"}}},
        **more,
    }


def parsed(config):
    return GlobalConfigDictParser().parse(
        GlobalConfigDictParserConfig(
            initial_global_config_dict=OmegaConf.create(config), skip_load_from_cli=True, skip_load_from_dotenv=True
        )
    )
