"""How an agent is told about a sandbox that somebody else made.

Rules:
* The descriptor is the provider's own; whoever passes it on does not read it.
* The provider is named, not described: its credentials stay in the configuration of whoever connects.

Source: servers.md §8.5.
"""

from typing import Literal

from pydantic import BaseModel, ConfigDict, JsonValue


class DirectSandboxConnection(BaseModel):
    """A sandbox that is reached through its provider; `provider_config_ref` names the provider's block."""

    model_config = ConfigDict(extra="forbid")

    kind: Literal["direct"] = "direct"
    provider_config_ref: str
    descriptor: dict[str, JsonValue]


class SandboxAccess(BaseModel):
    """A sandbox that an agent may work in; `workdir` is a path inside of it."""

    model_config = ConfigDict(extra="forbid")

    connection: DirectSandboxConnection
    workdir: str
