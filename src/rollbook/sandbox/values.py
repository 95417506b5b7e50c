"""What a sandbox is asked for and what it answers.

Rules:
* Values are frozen and can be copied with `dataclasses.replace`; their mappings belong to whoever made them.
* Times are seconds, memory is MiB, disks are GiB; `None` leaves the choice to the provider.
* A program that failed is a result; so is one that ran out of time. Only a sandbox that cannot be had is an exception.

Source: servers.md §9.1.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import Any, Self

from rollbook.errors import SandboxConfigError


@dataclass(frozen=True)
class SandboxResources:
    """How much of a machine a sandbox may use."""

    cpu: float | None = None
    memory_mib: int | None = None
    disk_gib: float | None = None
    gpu: int | None = None
    gpu_type: str | None = None

    @classmethod
    def from_mapping(cls, values: "Mapping[str, Any] | SandboxResources | None") -> Self:
        """Return the resources that a block of a configuration names; nothing named is nothing asked for.

        Raises:
            SandboxConfigError: a key that is no resource.

        """
        if isinstance(values, SandboxResources):
            return cls(**{each.name: getattr(values, each.name) for each in fields(values)})
        known = [each.name for each in fields(cls)]
        unknown = sorted(str(key) for key in values or {} if key not in known)
        if unknown:
            raise SandboxConfigError(f"unknown sandbox resources {', '.join(unknown)}; known are {', '.join(known)}")
        return cls(**(values or {}))


@dataclass(frozen=True)
class SandboxSpec:
    """One sandbox: where it starts from, what it may use, and what lies in it.

    `files` maps a path inside of the sandbox to its content, text or bytes. `provider_options` are the provider's own;
    a provider names those that it reads. `resources` may be given as a mapping.

    Raises:
        SandboxConfigError: `resources` has a key that is no resource.

    """

    image: str | None = None
    ttl_s: float | None = None
    ready_timeout_s: float | None = None
    workdir: str | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str | bytes] = field(default_factory=dict)
    metadata: Mapping[str, str] = field(default_factory=dict)
    resources: SandboxResources = field(default_factory=SandboxResources)
    entrypoint: list[str] | None = None
    provider_options: dict[str, object] = field(default_factory=dict)
    ports: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        """Read `resources` where a mapping was given, and make `ports` a tuple."""
        object.__setattr__(self, "resources", SandboxResources.from_mapping(self.resources))
        object.__setattr__(self, "ports", tuple(self.ports))


@dataclass(frozen=True)
class SandboxHandle:
    """One sandbox that exists; `raw` is the provider's own."""

    sandbox_id: str
    provider_name: str
    raw: Any = None


@dataclass(frozen=True)
class SandboxExecResult:
    """How a command ended.

    `error_type` is None when the command ended by itself, whatever its code; "timeout" when it ran out of time; any
    other word is a fault of the provider. With an `error_type` the code is never 0.
    """

    stdout: str | None
    stderr: str | None
    return_code: int
    error_type: str | None = None


class SandboxStatus(StrEnum):
    """What a sandbox is doing."""

    STARTING = "starting"
    RUNNING = "running"
    PAUSED = "paused"
    STOPPED = "stopped"
    ERROR = "error"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class SandboxEndpoint:
    """Where a port of a sandbox answers, and the headers that every request to it has to carry."""

    endpoint: str
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class SandboxPtySpec:
    """A program on a terminal: `rows` by `cols` characters; without `pty`, on pipes."""

    command: str | None = None
    cwd: str | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    rows: int = 24
    cols: int = 80
    user: str | None = None
    pty: bool = True
