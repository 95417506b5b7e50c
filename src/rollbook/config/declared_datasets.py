"""The data sets that a configuration's servers declare, and who runs their rows.

Rules:
* Agents and resources servers declare data sets; the rows name the instance that declares them as their task source.
* A file that is declared twice by the same instance and for the same type is one data set.

Source: servers.md §1.9, §8.9; collection.md §10.2.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Self

import msgspec
from omegaconf import DictConfig

from rollbook.config.datasets import BenchmarkDatasetConfig, DatasetConfig
from rollbook.config.instances import resources_server_of, server_instances
from rollbook.config.names import AGENTS, RESOURCES_SERVERS
from rollbook.config.types import ServerInstanceConfig
from rollbook.errors import ConfigError


class DeclaredDataset(msgspec.Struct, frozen=True):
    """A data set, and the instance that declares it; `folder` is that of the component which knows its tasks."""

    instance: str
    entry: DatasetConfig | BenchmarkDatasetConfig
    folder: Path | None

    def __str__(self) -> str:
        """Name it for messages."""
        return f"{self.entry.name} ({self.entry.type}, of {self.instance})"

    def with_prompt(self, prompt_config: str | None) -> Self:
        """Return the data set with another prompt in the place of its own; itself where none is given."""
        if prompt_config is None:
            return self
        return msgspec.structs.replace(self, entry=self.entry.model_copy(update={"prompt_config": prompt_config}))


def declared_datasets(cfg: DictConfig) -> tuple[DeclaredDataset, ...]:
    """Return every data set that the configuration's agents and resources servers declare, in its order."""
    instances = {one.name: one for one in server_instances(cfg)}
    found = {
        (one.name, entry.type, entry.jsonl_fpath): DeclaredDataset(one.name, entry, _folder(cfg, instances, one))
        for one in instances.values()
        if one.server_type in {AGENTS, RESOURCES_SERVERS}
        for entry in one.datasets
    }
    return tuple(found.values())


def datasets_of(cfg: DictConfig, types: Iterable[str]) -> tuple[DeclaredDataset, ...]:
    """Return the declared data sets of the given types.

    Raises:
        ConfigError: there is none; lists those that are declared.

    """
    wanted = tuple(types)
    declared = declared_datasets(cfg)
    found = tuple(one for one in declared if one.entry.type in wanted)
    if not found:
        listed = ", ".join(map(str, declared)) or "none at all"
        raise ConfigError(f"no data set of type {' or '.join(wanted)} is declared; declared: {listed}")
    return found


def _folder(cfg: DictConfig, instances: dict[str, ServerInstanceConfig], one: ServerInstanceConfig) -> Path | None:
    verifier = resources_server_of(cfg, one.name) if one.server_type == AGENTS else one.name
    return instances[verifier].dir_path if verifier in instances else None
