"""A benchmark as its configuration file describes it: one data set, and the agent that runs it.

Rules:
* A configuration is a benchmark's when one of its servers declares a data set of type `benchmark`.
* Reading one starts nothing and needs no model: its keys may be absent.

Source: servers.md §8.10.
"""

from os import PathLike
from pathlib import Path
from typing import Self

import msgspec
from omegaconf import DictConfig

from rollbook.config.datasets import BenchmarkDatasetConfig
from rollbook.config.parser import GlobalConfigDictParser, GlobalConfigDictParserConfig
from rollbook.config.roots import require_read_path
from rollbook.config.routing import resolve_dataset_agent
from rollbook.errors import ConfigError

_SHELF = "benchmarks"
_OWN_FILE = "config.yaml"


class BenchmarkDataset(msgspec.Struct, frozen=True):
    """A benchmark's data set; its paths are as the configuration writes them."""

    name: str
    jsonl_fpath: Path
    prepare_script: Path
    prompt_config: Path | None = None
    num_repeats: int = 1
    prepare_dependencies: tuple[str, ...] = ()
    taskset: str | None = None


class BenchmarkConfig(msgspec.Struct, frozen=True):
    """A benchmark: its name on the shelf, its file, the agent that runs it, and its data set."""

    name: str
    path: Path
    agent_name: str
    dataset: BenchmarkDataset

    @property
    def num_repeats(self) -> int:
        """How often every task is run."""
        return self.dataset.num_repeats

    @classmethod
    def from_config_path(cls, config_path: str | PathLike[str], strict: bool = True) -> Self | None:
        """Return the benchmark of a configuration file; None of one that has no benchmark data set, unless `strict`.

        Raises:
            ConfigError: a file that cannot be read, several benchmark data sets, or no agent to run the one.

        """
        path = require_read_path(Path(config_path), "configuration file of a benchmark")
        cfg = _parsed(path)
        found = _declared(cfg)
        if len(found) > 1 or (strict and not found):
            raise ConfigError(f"{path} declares {len(found) or 'no'} data sets of type benchmark; a benchmark has one")
        if not found:
            return None
        instance, dataset = found[0]
        agent = resolve_dataset_agent(cfg, instance, dataset.agent, dataset.taskset)
        return cls(_name(path, dataset), path, agent, _dataset(dataset))


def _parsed(path: Path) -> DictConfig:
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


def _declared(cfg: DictConfig) -> list[tuple[str, BenchmarkDatasetConfig]]:
    instances = GlobalConfigDictParser().filter_for_server_instance_configs(cfg)
    return [
        (instance.name, dataset)
        for instance in instances
        for dataset in instance.datasets
        if isinstance(dataset, BenchmarkDatasetConfig)
    ]


def _name(path: Path, dataset: BenchmarkDatasetConfig) -> str:
    """Return the folder's name, with its group's before it where it lies in one.

    A file that is not the folder's own `config.yaml` is a flavour, and has the name of its data set.
    """
    if path.name != _OWN_FILE:
        return dataset.name
    folder = path.parent
    return f"{folder.parent.name}/{folder.name}" if folder.parent.parent.name == _SHELF else folder.name


def _dataset(dataset: BenchmarkDatasetConfig) -> BenchmarkDataset:
    return BenchmarkDataset(
        dataset.name,
        Path(dataset.jsonl_fpath),
        dataset.prepare_script,
        None if dataset.prompt_config is None else Path(dataset.prompt_config),
        dataset.num_repeats,
        tuple(dataset.prepare_dependencies),
        dataset.taskset,
    )
