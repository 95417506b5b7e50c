"""One sandbox, as its user sees it.

Rules:
* A sandbox is started once and stopped once; what is asked of it before or after is a `RuntimeError`.
* A start that fails halfway leaves nothing behind: what was made is closed, and an owned provider with it.
* A stop that has begun is gone through with, though whoever asked for it is cancelled.
* What only some providers can do is asked of the provider at the call, and refused in words.

Source: servers.md §9.3.
"""

import asyncio
import tempfile
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self, runtime_checkable

from rollbook.errors import SandboxError
from rollbook.sandbox.provider import (
    ConnectableProvider,
    SandboxProvider,
    SupportsBackgroundServices,
    SupportsPauseResume,
    SupportsSandboxEndpoint,
)
from rollbook.sandbox.registry import create_provider
from rollbook.sandbox.terminals import SandboxPty
from rollbook.sandbox.values import SandboxEndpoint, SandboxExecResult, SandboxHandle, SandboxSpec, SandboxStatus


@runtime_checkable
class _AnyProvider(Protocol):
    """What tells a provider from a block: it can run a command."""

    async def exec(self, *arguments: Any, **options: Any) -> Any: ...


class AsyncSandbox:
    """A sandbox that is started, used and stopped; also an asynchronous context manager.

    Args:
        provider: a provider, or the block that names one: `{"local": {}}`.
        spec: what to start when `start` is given nothing.
        owns_provider: whether `stop` ends the provider too.

    Raises:
        SandboxConfigError: the block names no provider that there is.

    """

    def __init__(
        self,
        provider: Mapping[str, Any] | SandboxProvider,
        spec: SandboxSpec | None = None,
        *,
        owns_provider: bool = True,
    ) -> None:
        self._provider: Any = provider if isinstance(provider, _AnyProvider) else create_provider(provider)
        self._spec = spec
        self._owns_provider = owns_provider
        self._handle: SandboxHandle | None = None
        self._started = False
        self._started_by_block = False
        self._stopping: asyncio.Task[None] | None = None

    @classmethod
    async def connect(
        cls, descriptor: Mapping[str, Any], *, provider: Mapping[str, Any] | SandboxProvider, owns_provider: bool = True
    ) -> Self:
        """Return the running sandbox that `serialize` described, in this or another process.

        Raises:
            SandboxError: the provider cannot connect.
            SandboxCreateError: the sandbox is gone.

        """
        sandbox = cls(provider, owns_provider=owns_provider)
        sandbox._started = True
        if not isinstance(sandbox._provider, ConnectableProvider):
            raise sandbox._cannot("connect to a sandbox of another process")
        try:
            sandbox._handle = await sandbox._provider.connect(descriptor)
        except BaseException:
            await sandbox.stop()
            raise
        return sandbox

    @property
    def provider(self) -> Any:
        """The provider that the sandbox is one of."""
        return self._provider

    @property
    def handle(self) -> SandboxHandle:
        """The sandbox as its provider knows it."""
        if self._handle is None:
            raise RuntimeError(f"this sandbox {'is stopped' if self._stopped else 'is not started; call start first'}")
        return self._handle

    @property
    def sandbox_id(self) -> str:
        """The provider's name for the sandbox."""
        return self.handle.sandbox_id

    @property
    def pty(self) -> SandboxPty:
        """The terminals of the sandbox."""
        return SandboxPty(self._provider, self.handle)

    async def start(self, spec: SandboxSpec | None = None) -> Self:
        """Make the sandbox and put the files of its spec into it.

        The first start inside an `async with` block that has started the sandbox is that start.

        Raises:
            RuntimeError: it was started before, or there is no spec.
            SandboxCreateError: the provider made none.

        """
        wanted = spec or self._spec
        if self._started_by_block and wanted == self._spec and not self._stopped:
            self._started_by_block = False
            return self
        if self._started or self._stopped:
            raise RuntimeError("a sandbox is started once; make another one")
        if wanted is None:
            raise RuntimeError("nothing says what to start; pass a SandboxSpec to start, or to the sandbox")
        self._started = True
        try:
            self._handle = await self._provider.create(wanted)
            self._refuse_once_stopped()
            await self._put_files(wanted.files)
        except BaseException:
            await self.stop()
            raise
        self._spec = wanted
        return self

    async def start_with_setup(self, spec: SandboxSpec | None, setup: Callable[[Self], Awaitable[object]]) -> Self:
        """Start, and await `setup(self)`; where that raises, the sandbox is stopped and the error goes on."""
        await self.start(spec)
        try:
            await setup(self)
        except BaseException:
            await self.stop()
            raise
        return self

    async def exec(
        self,
        command: str,
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        timeout_s: float | None = 180,
        user: str | int | None = None,
        preserve_background_services: bool = False,
    ) -> SandboxExecResult:
        """Run a shell command to its end.

        A timeout is a result with a code other than 0 and `error_type` "timeout"; a fault of the provider has another
        `error_type`. With `preserve_background_services`, what the command leaves behind goes on.
        """
        run = self._provider.exec
        if preserve_background_services and isinstance(self._provider, SupportsBackgroundServices):
            run = self._provider.exec_with_background_services
        result: SandboxExecResult = await run(self.handle, command, cwd=cwd, env=env, timeout_s=timeout_s, user=user)
        return result

    async def upload(self, local: str | Path, remote: str) -> None:
        """Copy a file of this machine into the sandbox."""
        await self._provider.upload_file(self.handle, Path(local), str(remote))

    async def download(self, remote: str, local: str | Path) -> None:
        """Copy a file of the sandbox to this machine."""
        await self._provider.download_file(self.handle, str(remote), Path(local))

    async def status(self) -> SandboxStatus:
        """Return what the sandbox is doing."""
        if self._handle is None:
            return SandboxStatus.STOPPED if self._stopped else SandboxStatus.UNKNOWN
        status: SandboxStatus = await self._provider.status(self._handle)
        return status

    async def endpoint(self, port: int) -> SandboxEndpoint:
        """Return where a port of the sandbox answers.

        Raises:
            SandboxError: the provider publishes no ports.

        """
        if not isinstance(self._provider, SupportsSandboxEndpoint):
            raise self._cannot("publish a port")
        return await self._provider.endpoint(self.handle, port)

    async def pause(self) -> None:
        """Hold every program still.

        Raises:
            SandboxError: the provider cannot.

        """
        if not isinstance(self._provider, SupportsPauseResume):
            raise self._cannot("pause a sandbox")
        await self._provider.pause(self.handle)

    async def resume(self) -> None:
        """Let the programs go on.

        Raises:
            SandboxError: the provider cannot.

        """
        if not isinstance(self._provider, SupportsPauseResume):
            raise self._cannot("resume a sandbox")
        await self._provider.resume(self.handle)

    async def serialize(self, *, scope: str | None = None) -> dict[str, object]:
        """Return what `connect` takes: JSON.

        Raises:
            SandboxError: nobody else can reach a sandbox of this provider.

        """
        if not isinstance(self._provider, ConnectableProvider):
            raise self._cannot("describe a sandbox to another process")
        return await self._provider.serialize_handle(self.handle, scope)

    async def stop(self) -> None:
        """End the sandbox, and its provider where this one owns it; a second call waits for the end of the first."""
        if self._stopping is None or self._handle is not None:
            handle, self._handle = self._handle, None
            self._stopping = asyncio.create_task(self._end(handle))
            await asyncio.shield(self._stopping)
        elif not self._stopping.done():
            await asyncio.wait([self._stopping])

    async def disconnect(self) -> None:
        """Let go of the sandbox, for whoever has its descriptor; an owned provider ends."""
        self._handle = None
        await self.stop()

    async def __aenter__(self) -> Self:
        """Start with the spec that the sandbox was made with, unless it runs or has none yet."""
        if self._spec is not None and not self._started:
            await self.start()
            self._started_by_block = True
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop."""
        await self.stop()

    async def _put_files(self, files: Mapping[str, str | bytes]) -> None:
        for path, content in files.items():
            source = await asyncio.to_thread(_written, content)
            try:
                await self.upload(source, path)
            finally:
                await asyncio.to_thread(source.unlink)

    def _refuse_once_stopped(self) -> None:
        if self._stopped:
            raise RuntimeError("this sandbox was stopped while it started")

    @property
    def _stopped(self) -> bool:
        return self._stopping is not None

    async def _end(self, handle: SandboxHandle | None) -> None:
        try:
            if handle is not None:
                await self._provider.close(handle)
        finally:
            if self._owns_provider:
                await self._provider.aclose()

    def _cannot(self, what: str) -> SandboxError:
        name = getattr(self._provider, "name", type(self._provider).__name__)
        return SandboxError(f"the sandbox provider {name!r} cannot {what}")


def _written(content: str | bytes) -> Path:
    with tempfile.NamedTemporaryFile(prefix="rollbook-upload-", delete=False) as file:
        file.write(content.encode() if isinstance(content, str) else content)
    return Path(file.name)
