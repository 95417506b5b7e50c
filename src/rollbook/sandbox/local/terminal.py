"""A program on a terminal of a local sandbox.

Rules:
* The terminal is the program's controlling one: Ctrl-C typed into it interrupts what runs there.
* What was printed and not read is bounded: a program that prints on is held up, as on any terminal.
* Closing kills the program and all that it started.
"""

import asyncio
import fcntl
import os
import pty
import shutil
import socket
import struct
import termios
from pathlib import Path
from typing import Final

from rollbook.errors import SandboxPtyError
from rollbook.sandbox.local.box import COMMAND_VARIABLE, Box
from rollbook.sandbox.local.command import around, shell
from rollbook.sandbox.local.ending import end_group, end_marked
from rollbook.sandbox.local.watched import Watched
from rollbook.sandbox.values import SandboxPtySpec

PIECE_BYTES: Final = 1 << 16


class Terminal:
    """A program and the end of its terminal that we hold; a `SandboxPtySession`."""

    def __init__(self, session_id: str, descriptor: int, watched: Watched, box: Box) -> None:
        self.session_id = session_id
        self._descriptor = descriptor
        self._watched = watched
        self._box = box
        self._closed = False

    async def read(self, timeout_s: float | None = None) -> bytes:
        """Return what came since the last call, at least a byte; empty at the end, or when nothing came in time."""
        if self._closed:
            return b""
        if timeout_s == 0:
            return self._read_now() or b""
        try:
            async with asyncio.timeout(timeout_s):
                while (piece := self._read_now()) is None:
                    await self._readable()
        except TimeoutError:
            return b""
        return piece

    async def write(self, data: bytes) -> None:
        """Type `data`.

        Raises:
            SandboxPtyError: the terminal is closed.

        """
        rest = memoryview(data)
        while rest:
            if self._closed:
                raise SandboxPtyError(f"the terminal {self.session_id} is closed")
            try:
                rest = rest[os.write(self._descriptor, rest) :]
            except BlockingIOError:
                await self._writable()
            except OSError as error:
                raise SandboxPtyError(f"nobody reads the terminal {self.session_id}: {error.strerror}") from error

    async def resize(self, rows: int, cols: int) -> None:
        """Change the size of the terminal, in characters."""
        if os.isatty(self._descriptor):
            _set_size(self._descriptor, rows, cols)

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
        if self._closed:
            return
        self._closed = True
        asyncio.get_running_loop().remove_reader(self._descriptor)
        os.close(self._descriptor)
        self._box.running.discard(self._watched)
        self._box.terminals.pop(self.session_id, None)
        end_group(self._watched.pid)
        if self._box.holder is None:
            marker = f"{COMMAND_VARIABLE}={self.session_id}"
            await asyncio.to_thread(end_marked, marker, self._watched.pid)
        await self._watched.end()

    def _read_now(self) -> bytes | None:
        """Return what there is: empty at the end, None while there is nothing."""
        try:
            return os.read(self._descriptor, PIECE_BYTES)
        except BlockingIOError:
            return None
        except OSError:
            return b""

    async def _readable(self) -> None:
        loop = asyncio.get_running_loop()
        ready = loop.create_future()
        loop.add_reader(self._descriptor, _once, ready)
        try:
            await ready
        finally:
            loop.remove_reader(self._descriptor)

    async def _writable(self) -> None:
        loop = asyncio.get_running_loop()
        ready = loop.create_future()
        loop.add_writer(self._descriptor, _once, ready)
        try:
            await ready
        finally:
            loop.remove_writer(self._descriptor)


async def open_terminal(box: Box, spec: SandboxPtySpec, cwd: Path) -> Terminal:
    """Start a program on a terminal of its own; without `spec.pty`, on a socket.

    Raises:
        SandboxPtyError: none could be opened.

    """
    session_id = f"{box.sandbox_id}-{next(box.numbers)}"
    try:
        ours, theirs = _ends(spec)
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
    except (OSError, ValueError) as error:
        os.close(ours)
        raise SandboxPtyError(f"the program of a terminal could not be started: {error}") from error
    finally:
        os.close(theirs)
    box.running.add(watched)
    terminal = Terminal(session_id, ours, watched, box)
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


def _ends(spec: SandboxPtySpec) -> tuple[int, int]:
    """Return two ends of one line: ours, which never blocks, and the program's."""
    if spec.pty:
        ours, theirs = pty.openpty()
        _set_size(ours, spec.rows, spec.cols)
    else:
        ours, theirs = (end.detach() for end in socket.socketpair())
    os.set_blocking(ours, False)
    return ours, theirs


def _leader(spec: SandboxPtySpec) -> list[str]:
    """Return the words that make the terminal the program's controlling one."""
    program = shutil.which("setsid") if spec.pty else None
    return [program, "--ctty"] if program else []


def _set_size(descriptor: int, rows: int, cols: int) -> None:
    fcntl.ioctl(descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))


def _once(ready: "asyncio.Future[None]") -> None:
    if not ready.done():
        ready.set_result(None)
