"""What a provider of sandboxes is, and what some can do besides.

Rules:
* A provider is any object with these methods; it derives from nothing of ours.
* What only some can do is a protocol of its own, asked with `isinstance` before it is called.
* `close` ends one sandbox and may be called twice; `aclose` ends the provider and what it still holds.

Source: servers.md §9.2.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from rollbook.sandbox.values import (
    SandboxEndpoint,
    SandboxExecResult,
    SandboxHandle,
    SandboxPtySpec,
    SandboxSpec,
    SandboxStatus,
)


@runtime_checkable
class SandboxProvider(Protocol):
    """Where sandboxes come from."""

    name: str

    async def create(self, spec: SandboxSpec) -> SandboxHandle:
        """Return a sandbox that is ready for `exec`.

        Raises:
            SandboxCreateError: there will be none.

        """
        ...

    async def exec(
        self,
        handle: SandboxHandle,
        command: str,
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        timeout_s: float | None = None,
        user: str | int | None = None,
    ) -> SandboxExecResult:
        """Run a shell command to its end; a timeout is a result whose `error_type` is "timeout"."""
        ...

    async def upload_file(self, handle: SandboxHandle, source_path: Path, target_path: str) -> None:
        """Copy a file of this machine into the sandbox, and make the folders above it."""
        ...

    async def download_file(self, handle: SandboxHandle, source_path: str, target_path: Path) -> None:
        """Copy a file of the sandbox to this machine."""
        ...

    async def status(self, handle: SandboxHandle) -> SandboxStatus:
        """Return what the sandbox is doing."""
        ...

    async def close(self, handle: SandboxHandle) -> None:
        """End the sandbox and give back what it holds; a second call changes nothing."""
        ...

    async def aclose(self) -> None:
        """End the provider."""
        ...


@runtime_checkable
class SupportsBackgroundServices(Protocol):
    """A provider that can leave running what a command started in the background."""

    async def exec_with_background_services(
        self,
        handle: SandboxHandle,
        command: str,
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        timeout_s: float | None = None,
        user: str | int | None = None,
    ) -> SandboxExecResult:
        """Run a command as `exec` does; what it leaves behind runs until the sandbox ends."""
        ...


@runtime_checkable
class SupportsSandboxEndpoint(Protocol):
    """A provider that publishes ports of a sandbox."""

    async def endpoint(self, handle: SandboxHandle, port: int) -> SandboxEndpoint:
        """Return where `port` of the sandbox answers."""
        ...


@runtime_checkable
class SupportsSandboxNetwork(Protocol):
    """A provider whose sandboxes can be made to know one another by name."""

    def validate_network(self, spec: SandboxSpec) -> None:
        """Refuse a sandbox that cannot join a network."""
        ...

    async def network_address(self, handle: SandboxHandle) -> str:
        """Return the address that other sandboxes reach this one by."""
        ...

    async def set_hosts(self, handle: SandboxHandle, hosts: Mapping[str, str]) -> None:
        """Let the sandbox resolve these names to these addresses."""
        ...


@runtime_checkable
class SupportsRuntimeRequirements(Protocol):
    """A provider that can grant what a container asks of its runtime."""

    def with_runtime_requirements(
        self, spec: SandboxSpec, *, cap_add: Sequence[str] = (), shm_size: str | None = None
    ) -> SandboxSpec:
        """Return `spec` with these capabilities and this much shared memory asked for."""
        ...


@runtime_checkable
class SupportsPortForwarding(Protocol):
    """A provider that can make a port of this machine reachable from inside of a sandbox."""

    async def forward_port(self, handle: SandboxHandle, port: int) -> SandboxEndpoint:
        """Return the address under which the sandbox reaches `port` of this machine."""
        ...


@runtime_checkable
class SupportsSharedStorage(Protocol):
    """A provider whose sandboxes can share a folder."""

    def with_shared_storage(self, spec: SandboxSpec, *, name: str, path: str) -> SandboxSpec:
        """Return `spec` with the storage called `name` at `path`."""
        ...


@runtime_checkable
class SupportsPauseResume(Protocol):
    """A provider that can hold a sandbox still."""

    async def pause(self, handle: SandboxHandle) -> None:
        """Stop every program in it, and keep it."""
        ...

    async def resume(self, handle: SandboxHandle) -> None:
        """Let the programs go on."""
        ...


@runtime_checkable
class SandboxPtySession(Protocol):
    """One program on a terminal."""

    session_id: str

    async def read(self, timeout_s: float | None = None) -> bytes:
        """Return what came since the last call, at least a byte; empty at the end, or when nothing came in time."""
        ...

    async def write(self, data: bytes) -> None:
        """Type `data`."""
        ...

    async def resize(self, rows: int, cols: int) -> None:
        """Change the size of the terminal, in characters."""
        ...

    async def wait(self, timeout_s: float | None = None) -> int | None:
        """Return the exit code; None when the program still runs after `timeout_s`."""
        ...

    async def close(self) -> None:
        """End the program."""
        ...


@runtime_checkable
class SupportsSandboxPty(Protocol):
    """A provider that runs programs on terminals."""

    async def create_pty(self, handle: SandboxHandle, spec: SandboxPtySpec) -> SandboxPtySession:
        """Start a program on a terminal of its own."""
        ...

    async def attach_pty(self, handle: SandboxHandle, session_id: str) -> SandboxPtySession:
        """Return a terminal that was started before.

        Raises:
            SandboxPtyError: there is none of that id.

        """
        ...


@runtime_checkable
class ConnectableProvider(Protocol):
    """A provider whose sandboxes another process can reach."""

    async def serialize_handle(self, handle: SandboxHandle, scope: str | None = None) -> dict[str, object]:
        """Return a descriptor: JSON that `connect` of another process takes."""
        ...

    async def connect(self, descriptor: Mapping[str, Any]) -> SandboxHandle:
        """Return the sandbox that a descriptor names.

        Raises:
            SandboxCreateError: it is gone, or cannot be reached from here.

        """
        ...
