"""What a configuration composes, as a manifest repeats it: who judges, who acts, whom it asks, and on which rows.

Rules:
* Nothing is guessed: where several agents or several owners of rows could be meant, it is an error that lists them.
* Paths are told as the configuration writes them, interpolations included.

Source: servers.md §8.12, §1.9.
"""

from collections.abc import Mapping
from pathlib import Path

import msgspec
from omegaconf import DictConfig

from rollbook.config.files import plain
from rollbook.config.instances import agents, implementation_of, model_server_of, resources_server_of
from rollbook.config.names import AGENTS, RESOURCES_SERVERS
from rollbook.config.parser import GlobalConfigDictParser, GlobalConfigDictParserConfig
from rollbook.config.routing import resolve_dataset_agent
from rollbook.config.tree import Tree, blocks
from rollbook.errors import ConfigError

_DRIVER = "rollout_collection_driver"
_OF_A_DATASET = ("name", "type", "jsonl_fpath", "prepare_script", "prompt_config", "num_repeats")


class Composed(msgspec.Struct, frozen=True):
    """What a manifest mirrors. Servers are told by implementation, the model by its name in the configuration.

    `judge` and `agent` are the names of the two servers in the configuration.
    """

    judge: str | None
    agent: str
    resources_server: str | None
    agent_server: str
    model_server: str | None
    dataset_owner: str | None
    datasets: tuple[Mapping[str, object], ...]
    rollout_driver: str | None


def parsed_without_model(path: Path) -> DictConfig:
    """Return the configuration in a file as it resolves where no model is to be asked.

    Raises:
        ConfigError: a configuration that cannot be run.

    """
    return GlobalConfigDictParser().parse(
        GlobalConfigDictParserConfig(
            initial_global_config_dict={
                **GlobalConfigDictParserConfig.NO_MODEL_GLOBAL_CONFIG_DICT,
                "config_paths": [str(path)],
            },
            skip_load_from_cli=True,
            skip_load_from_dotenv=True,
            offline=True,
        )
    )


def composed_by(cfg: DictConfig, owner: str | None = None) -> Composed:
    """Return what a configuration composes; `owner` says which of several declares the rows that are meant.

    Raises:
        ConfigError: no agent, or several agents or owners of rows and nothing that says which.

    """
    tree = plain(cfg)
    declared = _declared(tree)
    chosen = _owner(declared, owner)
    agent = _agent_of_rows(cfg, chosen, declared[chosen]) if chosen is not None else _only_agent(cfg)
    judge = resources_server_of(cfg, agent)
    driver = cfg.get(_DRIVER)
    return Composed(
        judge=judge,
        agent=agent,
        resources_server=None if judge is None else implementation_of(cfg, judge)[1],
        agent_server=implementation_of(cfg, agent)[1],
        model_server=model_server_of(cfg, agent),
        dataset_owner=chosen,
        datasets=tuple(_mirrored(entry) for entry in declared.get(chosen or "", ())),
        rollout_driver=None if driver is None else str(driver),
    )


def _declared(tree: Tree) -> dict[str, list[Tree]]:
    found: dict[str, list[Tree]] = {}
    for kind in (RESOURCES_SERVERS, AGENTS):
        for name, _, block in blocks(tree, kind):
            entries = block.get("datasets")
            rows = [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []
            if rows:
                found[name] = rows
    return found


def _owner(declared: Mapping[str, object], owner: str | None) -> str | None:
    if owner is not None and owner not in declared:
        known = ", ".join(declared) or "nobody"
        raise ConfigError(f"dataset_owner is `{owner}`, which declares no data set; {known} does")
    if owner is None and len(declared) > 1:
        raise ConfigError(
            f"{', '.join(declared)} declare data sets; say in the manifest which are meant, as dataset_owner: <name>"
        )
    return owner or next(iter(declared), None)


def _agent_of_rows(cfg: DictConfig, owner: str, entries: list[Tree]) -> str:
    pin, taskset = entries[0].get("agent"), entries[0].get("taskset")
    return resolve_dataset_agent(
        cfg, owner, pin if isinstance(pin, str) else None, taskset if isinstance(taskset, str) else None
    )


def _only_agent(cfg: DictConfig) -> str:
    found = agents(cfg)
    if len(found) != 1:
        raise ConfigError(
            f"the configuration has {len(found)} agents ({', '.join(found) or 'none'}) and declares no rows that would "
            "say which one is meant; leave one, or declare a data set"
        )
    return found[0]


def _mirrored(entry: Tree) -> dict[str, object]:
    told = {key: entry[key] for key in _OF_A_DATASET if entry.get(key) is not None}
    return {"num_repeats": 1, **told}
