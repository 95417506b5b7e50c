"""The values of a configuration: server blocks, references between them, instances.

Rules:
* `…TypeConfig` is a block as written, with host and port still open; `…Config` is one that can be served.
* An instance's name is its address; its type and implementation are the folders that hold its `app.py`.

Source: servers.md §1.4, §1.9.
"""

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Literal

import msgspec
from pydantic import BaseModel, ConfigDict, Field, PositiveInt

from rollbook.config.datasets import (
    AgentNames,
    AnyDatasetConfig,
    BenchmarkDatasetConfig,
    DatasetConfig,
    GitlabIdentifier,
    HuggingFaceIdentifier,
    License,
    dataset_from,
)
from rollbook.config.roots import resolve_read_path

__all__ = [
    "AgentServerRef",
    "BaseRunServerConfig",
    "BaseRunServerInstanceConfig",
    "BaseRunServerTypeConfig",
    "BaseServerConfig",
    "BenchmarkDatasetConfig",
    "DatasetConfig",
    "Domain",
    "EnvironmentServerRef",
    "GitlabIdentifier",
    "HuggingFaceIdentifier",
    "License",
    "ModelServerRef",
    "ResourcesServerRef",
    "ResourcesServerTypeConfig",
    "ServerInstanceConfig",
    "ServerRef",
]


class Domain(StrEnum):
    """What a resources server is about."""

    MATH = "math"
    CODING = "coding"
    AGENT = "agent"
    KNOWLEDGE = "knowledge"
    INSTRUCTION_FOLLOWING = "instruction_following"
    LONG_CONTEXT = "long_context"
    SAFETY = "safety"
    GAMES = "games"
    TRANSLATION = "translation"
    E2E = "e2e"
    RLHF = "rlhf"
    OTHER = "other"


class BaseServerConfig(BaseModel):
    """Where a server listens, and with how many worker processes."""

    host: str
    port: int
    num_workers: int | None = None


class BaseRunServerConfig(BaseServerConfig):
    """A server that can be started; `entrypoint` is relative to its implementation folder."""

    model_config = ConfigDict(defer_build=True)

    entrypoint: str
    domain: Domain | None = None


class BaseRunServerInstanceConfig(BaseRunServerConfig):
    """A server that knows its own instance name."""

    name: str


class BaseRunServerTypeConfig(BaseModel):
    """A server block as written: host and port may still be open; an implementation's own keys are kept."""

    model_config = ConfigDict(extra="allow", defer_build=True)

    entrypoint: str
    domain: Domain | None = None
    host: str | None = None
    port: int | None = Field(default=None, ge=-1, le=65535)
    num_workers: PositiveInt | None = None
    datasets: list[AnyDatasetConfig] | None = None


class ResourcesServerTypeConfig(BaseRunServerTypeConfig):
    """A resources server's block, which must say its domain."""

    domain: Domain
    allowed_agents: AgentNames | None = None
    allowed_model_types: AgentNames | None = None


class _Ref(BaseModel):
    model_config = ConfigDict(defer_build=True)

    name: str


class ModelServerRef(_Ref):
    """A reference to a model server."""

    type: Literal["responses_api_models"]


class ResourcesServerRef(_Ref):
    """A reference to a resources server."""

    type: Literal["resources_servers"]


class AgentServerRef(_Ref):
    """A reference to an agent server."""

    type: Literal["responses_api_agents"]


class EnvironmentServerRef(_Ref):
    """A reference to an environment server."""

    type: Literal["environment_servers"]


ServerRef = ModelServerRef | ResourcesServerRef | AgentServerRef | EnvironmentServerRef


class ServerInstanceConfig(msgspec.Struct, frozen=True):
    """One server instance: `settings` is its innermost block, resolved."""

    name: str
    server_type: str
    implementation: str
    settings: Mapping[str, object]

    @property
    def entrypoint(self) -> str:
        """The file to run, relative to `dir_path`."""
        return str(self.settings["entrypoint"])

    @property
    def host(self) -> str | None:
        """The host it listens on; None before addresses are given out."""
        host = self.settings.get("host")
        return None if host is None else str(host)

    @property
    def port(self) -> int | None:
        """The port it listens on; None before addresses are given out."""
        port = self.settings.get("port")
        return port if isinstance(port, int) else None

    @property
    def num_workers(self) -> int:
        """How many processes serve it."""
        workers = self.settings.get("num_workers")
        return workers if isinstance(workers, int) else 1

    @property
    def dir_path(self) -> Path:
        """The folder of its implementation, under the first root that holds the entry point."""
        folder = Path(self.server_type) / self.implementation
        return resolve_read_path(folder, lambda candidate: (candidate / self.entrypoint).is_file())

    @property
    def datasets(self) -> tuple[DatasetConfig | BenchmarkDatasetConfig, ...]:
        """The data sets that it declares."""
        entries = self.settings.get("datasets")
        return tuple(dataset_from(entry) for entry in entries) if isinstance(entries, list) else ()
