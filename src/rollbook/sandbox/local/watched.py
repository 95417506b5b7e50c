"""One process that is being watched: what it prints, and when it ends.

Rules:
* The end of the process counts, not the end of its output: who inherited the pipes may hold them open for long.
* A process that prints without end is told by `flooded`, and memory follows what is kept.
"""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import IO, Final, Self, cast

from rollbook.sandbox.local.captured import Captured
from rollbook.sandbox.local.ending import end_group

OUT: Final = 1
ERR: Final = 2
LAST_WORDS_S: Final = 5
"""How long output is read on after everything that could print was killed."""

Stream = int | IO[bytes] | None


class Watched(asyncio.SubprocessProtocol):
    """A running process and the two ends of what it printed.

    Args:
        most_kept: bytes of a stream that are kept.
        most_printed: bytes of a stream after which it counts as endless.

    """

    def __init__(self, most_kept: int, most_printed: int) -> None:
        self.out = Captured(most_kept)
        self.err = Captured(most_kept)
        self._most_printed = most_printed
        loop = asyncio.get_running_loop()
        self._exited: asyncio.Future[None] = loop.create_future()
        self._spoke: asyncio.Future[None] = loop.create_future()
        self._too_much: asyncio.Future[None] = loop.create_future()
        self._gone: asyncio.Future[None] = loop.create_future()
        self._transport: asyncio.SubprocessTransport | None = None

    @classmethod
    async def start(
        cls,
        words: Sequence[str | bytes],
        env: Mapping[str, str],
        *,
        stdin: Stream,
        stdout: Stream,
        stderr: Stream,
        most_kept: int = 1 << 16,
        most_printed: int = 1 << 28,
    ) -> Self:
        """Start a process in a session of its own.

        Raises:
            OSError: the system could start none.

        """
        loop = asyncio.get_running_loop()
        _, watched = await loop.subprocess_exec(
            lambda: cls(most_kept, most_printed),
            *words,
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            env=dict(env),
            cwd="/",
            start_new_session=True,
        )
        return watched

    @property
    def pid(self) -> int:
        """The process's number, which is that of its group and session too."""
        return self._running().get_pid()

    @property
    def code(self) -> int | None:
        """The exit code, None while it runs; death by a signal is 128 and the signal's number, as shells say it."""
        code = self._running().get_returncode()
        return 128 - code if code is not None and code < 0 else code

    @property
    def flooded(self) -> bool:
        """Whether it has printed as much as counts as endless."""
        return self._too_much.done()

    async def over(self) -> None:
        """Wait until the process ends, or has printed too much."""
        await asyncio.wait([self._exited, self._too_much], return_when=asyncio.FIRST_COMPLETED)

    async def exited(self) -> None:
        """Wait until the process ends."""
        await asyncio.shield(self._exited)

    async def spoke(self) -> bool:
        """Wait until it prints something or ends; return whether it printed."""
        await asyncio.wait([self._spoke, self._exited], return_when=asyncio.FIRST_COMPLETED)
        return self._spoke.done()

    async def end(self) -> None:
        """Kill the process, while it runs, with its group, and take its last words."""
        if self.code is None:
            end_group(self.pid)
        self.let_go()
        with suppress(TimeoutError):
            async with asyncio.timeout(LAST_WORDS_S):
                await asyncio.shield(self._gone)
        self._running().close()

    def let_go(self) -> None:
        """Close the process's input."""
        if lifeline := self._running().get_pipe_transport(0):
            lifeline.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        self._transport = cast("asyncio.SubprocessTransport", transport)

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """Keep what was printed."""
        captured = self.out if fd == OUT else self.err
        captured.add(data)
        _tell(self._spoke)
        if captured.total >= self._most_printed:
            _tell(self._too_much)

    def process_exited(self) -> None:
        """Tell who waits for the end."""
        _tell(self._exited)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002  the protocol's signature
        """Tell that nothing more will be printed."""
        _tell(self._gone)

    def _running(self) -> asyncio.SubprocessTransport:
        if self._transport is None:
            raise RuntimeError("the process is not started")
        return self._transport


def _tell(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
