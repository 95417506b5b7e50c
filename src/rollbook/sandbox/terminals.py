"""Programs on terminals, whichever provider runs them.

Rules:
* A provider without terminals is told by `SandboxPtyError`, when one is asked for.
* `exec` with `detach` holds no connection while the program runs: it looks in again every `poll_interval_s`.

Source: servers.md §9.3.
"""

import asyncio
from collections.abc import Mapping
from typing import Final

from rollbook.errors import SandboxPtyError
from rollbook.sandbox.provider import SandboxPtySession, SupportsSandboxPty
from rollbook.sandbox.values import SandboxExecResult, SandboxHandle, SandboxPtySpec

TIMEOUT_CODE: Final = 124
MOST_OUTPUT_BYTES: Final = 1_000_000


class SandboxPty:
    """The terminals of one sandbox."""

    def __init__(self, provider: object, handle: SandboxHandle) -> None:
        self._provider = provider
        self._handle = handle

    async def create(self, spec: SandboxPtySpec | None = None) -> SandboxPtySession:
        """Start a program on a terminal; without a command, a shell.

        Raises:
            SandboxPtyError: the provider has no terminals, or could open none.

        """
        return await self._terminals().create_pty(self._handle, spec or SandboxPtySpec())

    async def attach(self, session_id: str) -> SandboxPtySession:
        """Return a terminal that was started before.

        Raises:
            SandboxPtyError: the provider has no terminals, or none of that id.

        """
        return await self._terminals().attach_pty(self._handle, session_id)

    async def exec(
        self,
        command: str,
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        timeout_s: float | None = 180,
        user: str | None = None,
        detach: bool = False,
        poll_interval_s: float = 15,
    ) -> SandboxExecResult:
        """Run a command on a terminal to its end; what it prints, errors too, is `stdout`.

        Raises:
            SandboxPtyError: the provider has no terminals, or could open none.

        """
        session = await self.create(SandboxPtySpec(command=command, cwd=cwd, env=env or {}, user=user))
        seen = bytearray()
        try:
            async with asyncio.timeout(timeout_s):
                code = await (self._looked_in(session, seen, poll_interval_s) if detach else _followed(session, seen))
        except TimeoutError:
            return SandboxExecResult(_text(seen), f"no end within {timeout_s} s", TIMEOUT_CODE, "timeout")
        finally:
            await session.close()
        return SandboxExecResult(_text(seen), "", code)

    async def _looked_in(self, session: SandboxPtySession, seen: bytearray, every_s: float) -> int:
        while (code := await session.wait(every_s)) is None:
            session = await self.attach(session.session_id)
            await _drain(session, seen)
        await _drain(session, seen)
        return code

    def _terminals(self) -> SupportsSandboxPty:
        if isinstance(self._provider, SupportsSandboxPty):
            return self._provider
        raise SandboxPtyError(f"the sandbox provider {self._handle.provider_name!r} has no terminals; use exec")


async def _followed(session: SandboxPtySession, seen: bytearray) -> int:
    while piece := await session.read():
        _keep(seen, piece)
    code = await session.wait()
    return 1 if code is None else code


async def _drain(session: SandboxPtySession, seen: bytearray) -> None:
    while piece := await session.read(0):
        _keep(seen, piece)


def _keep(seen: bytearray, piece: bytes) -> None:
    seen.extend(piece[: max(0, MOST_OUTPUT_BYTES - len(seen))])


def _text(seen: bytearray) -> str:
    return seen.decode("utf-8", errors="replace")
