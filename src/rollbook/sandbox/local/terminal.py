"""A program on a terminal of a local sandbox.

Rules:
* The terminal is the program's controlling one: Ctrl-C typed into it interrupts what runs there.
* What was printed and not read is bounded: a program that prints on is held up, as on any terminal.
* Closing kills the program and all that it started, and whoever reads or writes meanwhile is told.
* A sandbox that is closed closes its terminals.
"""

import asyncio
import os
import pty
import shutil
import socket
from pathlib import Path

from rollbook.errors import SandboxPtyError
from rollbook.sandbox.local.box import COMMAND_VARIABLE, Box
from rollbook.sandbox.local.command import around, shell
from rollbook.sandbox.local.ending import end_group, end_marked
from rollbook.sandbox.local.line import Line
from rollbook.sandbox.local.watched import Watched
from rollbook.sandbox.values import SandboxPtySpec


class Terminal:
    """A program and the end of its terminal that we hold; a `SandboxPtySession`."""

    def __init__(self, session_id: str, line: Line, watched: Watched, box: Box) -> None:
        self.session_id = session_id
        self._line = line
        self._watched = watched
        self._box = box
        self._closed = False

    async def read(self, timeout_s: float | None = None) -> bytes:
        """Return what came since the last call, at least a byte; empty at the end, or when nothing came in time."""
        if timeout_s == 0:
            return self._line.take() or b""
        try:
            async with asyncio.timeout(timeout_s):
                while (piece := self._line.take()) is None:
                    await self._line.readable()
        except TimeoutError:
            return b""
        return piece

    async def write(self, data: bytes) -> None:
        """Type `data`.

        Raises:
            SandboxPtyError: the terminal is closed, or was closed before all was typed.

        """
        rest = memoryview(data)
        while rest:
            if self._line.closed:
                raise SandboxPtyError(f"the terminal {self.session_id} is closed")
            try:
                typed = self._line.put(rest)
            except OSError as error:
                raise SandboxPtyError(f"nobody reads the terminal {self.session_id}: {error.strerror}") from error
            rest = rest[typed:]
            if not typed:
                await self._line.writable()

    async def resize(self, rows: int, cols: int) -> None:
        """Change the size of the terminal, in characters."""
        self._line.set_size(rows, cols)

    async def wait(self, timeout_s: float | None = None) -> int | None:
        """Return the exit code; None when the program still runs after `timeout_s`."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._watched.exited()
        except TimeoutError:
            return None
        return self._watched.code

    async def close(self) -> None:
        """Kill the program and all that it started; a second call changes nothing."""
        self.hang_up()
        if self._closed:
            return
        self._closed = True
        self._box.running.discard(self._watched)
        self._box.terminals.pop(self.session_id, None)
        end_group(self._watched.pid)
        if self._box.holder is None:
            marker = f"{COMMAND_VARIABLE}={self.session_id}"
            await asyncio.to_thread(end_marked, marker, self._watched.pid)
        await self._watched.end()

    def hang_up(self) -> None:
        """Close our end, and tell whoever reads or writes; the program is not killed."""
        self._line.close()


async def open_terminal(box: Box, spec: SandboxPtySpec, cwd: Path) -> Terminal:
    """Start a program on a terminal of its own; without `spec.pty`, on a socket.

    Raises:
        SandboxPtyError: none could be opened.

    """
    session_id = f"{box.sandbox_id}-{next(box.numbers)}"
    try:
        line, theirs = _ends(spec)
    except OSError as error:
        raise SandboxPtyError(f"no terminal: {error}") from error
    words = [*_leader(spec), shell(), *(["-c", spec.command] if spec.command is not None else [])]
    try:
        watched = await Watched.start(
            around(box, words, cwd, None, outlives=False, keeps_input=True),
            {"TERM": "xterm"} | box.environment(session_id, spec.env),
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
        )
    except BaseException as error:
        line.close()
        if isinstance(error, OSError | ValueError):
            raise SandboxPtyError(f"the program of a terminal could not be started: {error}") from error
        raise
    finally:
        os.close(theirs)
    box.began(watched)
    terminal = Terminal(session_id, line, watched, box)
    if box.ended:
        await terminal.close()
        raise SandboxPtyError(f"the sandbox {box.sandbox_id} ended while a terminal was opened")
    box.terminals[session_id] = terminal
    return terminal


def opened_terminal(box: Box, session_id: str) -> Terminal:
    """Return a terminal of the sandbox.

    Raises:
        SandboxPtyError: there is none of that id.

    """
    terminal = box.terminals.get(session_id)
    if not isinstance(terminal, Terminal):
        raise SandboxPtyError(f"no terminal {session_id!r} in the sandbox {box.sandbox_id}")
    return terminal


def _ends(spec: SandboxPtySpec) -> tuple[Line, int]:
    """Return two ends of one line: ours and the program's."""
    if not spec.pty:
        ours, theirs = (end.detach() for end in socket.socketpair())
        return Line(ours), theirs
    ours, theirs = pty.openpty()
    line = Line(ours)
    line.set_size(spec.rows, spec.cols)
    return line, theirs


def _leader(spec: SandboxPtySpec) -> list[str]:
    """Return the words that make the terminal the program's controlling one."""
    program = shutil.which("setsid") if spec.pty else None
    return [program, "--ctty"] if program else []
