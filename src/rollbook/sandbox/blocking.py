"""The same sandbox for code that does not await.

Rules:
* Every call runs on an event loop in a thread of the sandbox's own, and ends with it.
* Inside of a running event loop it refuses: blocking there would hold everything else up.

Source: servers.md §9.3.
"""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from threading import Thread
from types import TracebackType
from typing import Any, Self, TypeVar

from rollbook.sandbox.async_sandbox import AsyncSandbox
from rollbook.sandbox.provider import SandboxProvider, SandboxPtySession
from rollbook.sandbox.values import (
    SandboxEndpoint,
    SandboxExecResult,
    SandboxHandle,
    SandboxPtySpec,
    SandboxSpec,
    SandboxStatus,
)

Answer = TypeVar("Answer")


class _LoopThread:
    """An event loop in a thread, which begins with the first call."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None

    def run(self, make: Callable[[], Coroutine[Any, Any, Answer]]) -> Answer:
        refuse_inside_of_a_loop()
        future = asyncio.run_coroutine_threadsafe(make(), self._running())
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def end(self) -> None:
        loop, self._loop = self._loop, None
        if loop is not None:
            loop.call_soon_threadsafe(loop.stop)

    def _running(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            Thread(target=_serve, args=(self._loop,), name="rollbook-sandbox", daemon=True).start()
        return self._loop


class Sandbox:
    """The blocking twin of `AsyncSandbox`; the same calls with the same meanings.

    Raises:
        RuntimeError: a call from inside of a running event loop.

    """

    def __init__(
        self,
        provider: Mapping[str, Any] | SandboxProvider,
        spec: SandboxSpec | None = None,
        *,
        owns_provider: bool = True,
    ) -> None:
        self._thread = _LoopThread()
        self._sandbox = AsyncSandbox(provider, spec, owns_provider=owns_provider)

    @classmethod
    def connect(
        cls, descriptor: Mapping[str, Any], *, provider: Mapping[str, Any] | SandboxProvider, owns_provider: bool = True
    ) -> Self:
        """Return the running sandbox that `serialize` described."""
        twin = cls(provider, owns_provider=owns_provider)
        owner = twin._sandbox.provider
        twin._sandbox = twin._thread.run(
            lambda: AsyncSandbox.connect(descriptor, provider=owner, owns_provider=owns_provider)
        )
        return twin

    @property
    def handle(self) -> SandboxHandle:
        """The sandbox as its provider knows it."""
        return self._sandbox.handle

    @property
    def sandbox_id(self) -> str:
        """The provider's name for the sandbox."""
        return self._sandbox.sandbox_id

    @property
    def pty(self) -> "BlockingPty":
        """The terminals of the sandbox."""
        return BlockingPty(self._sandbox, self._thread)

    def start(self, spec: SandboxSpec | None = None) -> Self:
        """Make the sandbox and put the files of its spec into it."""
        self._ask(lambda: self._sandbox.start(spec))
        return self

    def start_with_setup(self, spec: SandboxSpec | None, setup: Callable[[Self], object]) -> Self:
        """Start, and call `setup(self)`; where that raises, the sandbox is stopped and the error goes on."""
        self.start(spec)
        try:
            setup(self)
        except BaseException:
            self.stop()
            raise
        return self

    def exec(
        self,
        command: str,
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        timeout_s: float | None = 180,
        user: str | int | None = None,
        preserve_background_services: bool = False,
    ) -> SandboxExecResult:
        """Run a shell command to its end; a timeout is a result."""
        return self._ask(
            lambda: self._sandbox.exec(
                command,
                cwd=cwd,
                env=env,
                timeout_s=timeout_s,
                user=user,
                preserve_background_services=preserve_background_services,
            )
        )

    def upload(self, local: str | Path, remote: str) -> None:
        """Copy a file of this machine into the sandbox."""
        self._ask(lambda: self._sandbox.upload(local, remote))

    def download(self, remote: str, local: str | Path) -> None:
        """Copy a file of the sandbox to this machine."""
        self._ask(lambda: self._sandbox.download(remote, local))

    def status(self) -> SandboxStatus:
        """Return what the sandbox is doing."""
        return self._ask(self._sandbox.status)

    def endpoint(self, port: int) -> SandboxEndpoint:
        """Return where a port of the sandbox answers."""
        return self._ask(lambda: self._sandbox.endpoint(port))

    def pause(self) -> None:
        """Hold every program still."""
        self._ask(self._sandbox.pause)

    def resume(self) -> None:
        """Let the programs go on."""
        self._ask(self._sandbox.resume)

    def serialize(self, *, scope: str | None = None) -> dict[str, object]:
        """Return what `connect` takes: JSON."""
        return self._ask(lambda: self._sandbox.serialize(scope=scope))

    def stop(self) -> None:
        """End the sandbox, its provider where this one owns it, and the thread."""
        try:
            self._ask(self._sandbox.stop)
        finally:
            self._thread.end()

    def disconnect(self) -> None:
        """Let go of the sandbox and let it live."""
        try:
            self._ask(self._sandbox.disconnect)
        finally:
            self._thread.end()

    def __enter__(self) -> Self:
        """Start with the spec that the sandbox was made with, unless it runs or has none yet."""
        self._ask(self._sandbox.__aenter__)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop."""
        self.stop()

    def _ask(self, make: Callable[[], Coroutine[Any, Any, Answer]]) -> Answer:
        return self._thread.run(make)


class BlockingPty:
    """The terminals of one blocking sandbox; the calls of `SandboxPty`."""

    def __init__(self, sandbox: AsyncSandbox, thread: _LoopThread) -> None:
        self._sandbox = sandbox
        self._thread = thread

    def create(self, spec: SandboxPtySpec | None = None) -> "BlockingPtySession":
        """Start a program on a terminal; without a command, a shell."""
        return BlockingPtySession(self._thread.run(lambda: self._sandbox.pty.create(spec)), self._thread)

    def attach(self, session_id: str) -> "BlockingPtySession":
        """Return a terminal that was started before."""
        return BlockingPtySession(self._thread.run(lambda: self._sandbox.pty.attach(session_id)), self._thread)

    def exec(self, command: str, **options: Any) -> SandboxExecResult:
        """Run a command on a terminal to its end; the options are those of `SandboxPty.exec`."""
        return self._thread.run(lambda: self._sandbox.pty.exec(command, **options))


class BlockingPtySession:
    """One program on a terminal; the calls of `SandboxPtySession`."""

    def __init__(self, session: SandboxPtySession, thread: _LoopThread) -> None:
        self._session = session
        self._thread = thread
        self.session_id = session.session_id

    def read(self, timeout_s: float | None = None) -> bytes:
        """Return what came since the last call; empty at the end, or when nothing came in time."""
        return self._thread.run(lambda: self._session.read(timeout_s))

    def write(self, data: bytes) -> None:
        """Type `data`."""
        self._thread.run(lambda: self._session.write(data))

    def resize(self, rows: int, cols: int) -> None:
        """Change the size of the terminal."""
        self._thread.run(lambda: self._session.resize(rows, cols))

    def wait(self, timeout_s: float | None = None) -> int | None:
        """Return the exit code; None when the program still runs after `timeout_s`."""
        return self._thread.run(lambda: self._session.wait(timeout_s))

    def close(self) -> None:
        """End the program."""
        self._thread.run(self._session.close)


def refuse_inside_of_a_loop() -> None:
    """Raise where an event loop runs in this thread.

    Raises:
        RuntimeError: one does.

    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise RuntimeError("Sandbox blocks, and an event loop runs in this thread; use AsyncSandbox")


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    loop.run_forever()
    if begun := asyncio.all_tasks(loop):
        loop.run_until_complete(asyncio.wait(begun))
    loop.close()
