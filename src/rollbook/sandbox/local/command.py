"""One command in a local sandbox, from its words to its result.

Rules:
* The limits are set by a shell between the sandbox and the command, and that shell is what is waited for.
* A command ends by itself, by its time, or by printing without end; each way everything that it started is killed.
* A command that leaves services behind prints into files without a name, so that they keep an output that works and
  nobody can put another file there.
* Nothing of ours lies in the directory of a sandbox: whatever its programs put there, we do not open it.
* What a caller may send is a result, never an exception: text that no program can be given, or too much of it.
"""

import asyncio
import os
import shutil
import signal
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from subprocess import DEVNULL, PIPE
from tempfile import TemporaryFile, mkstemp
from typing import IO, Final

from rollbook.sandbox.local.box import COMMAND_VARIABLE, END_TIMEOUT_S, Box
from rollbook.sandbox.local.captured import Captured
from rollbook.sandbox.local.ending import children_of, end_group, end_marked
from rollbook.sandbox.local.limits import cpu_seconds
from rollbook.sandbox.local.watched import Stream, Watched
from rollbook.sandbox.values import SandboxExecResult

MOST_ARGUMENT_BYTES: Final = 100_000
"""A longer command is run from a file: Linux takes no argument above 128 KiB."""
MOST_KEPT_BYTES: Final = 4_000_000
MOST_PRINTED_BYTES: Final = 1 << 28
PIECE_BYTES: Final = 1 << 20
TIMEOUT_CODE: Final = 124
FAULT_CODE: Final = 125
NOT_RUN_CODE: Final = 126

IN_NAMESPACES: Final = 'exec 4>&2 2>/dev/null; cd -- "$1" 2>&4 || exit 126; shift; {limits}; "$@" 2>&4 4>&-; exit $?'
PLAIN: Final = (
    "exec 3<&0 </dev/null; {{ cat <&3; kill -KILL 0; }} >/dev/null 2>&1 & exec 4>&2 2>/dev/null; "
    'cd -- "$1" 2>&4 || exit 126; shift; {limits}; "$@" 2>&4 3<&- 4>&-; exit $?'
)
"""Without namespaces, a second process waits for the death of whoever runs the sandbox, and then kills the group."""


@dataclass(frozen=True)
class Command:
    """What is to be run; `outlives` asks that what it leaves behind goes on."""

    text: str
    cwd: Path
    env: Mapping[str, str]
    timeout_s: float | None
    outlives: bool = False


async def run(box: Box, command: Command) -> SandboxExecResult:
    """Run a command to its end."""
    if "\0" in command.text:
        return SandboxExecResult("", "the command holds a NUL character, which no shell takes", NOT_RUN_CODE)
    number = next(box.numbers)
    try:
        async with _script(box, command) as shell_words:
            words = around(box, shell_words, command.cwd, command.timeout_s, outlives=command.outlives)
            env = box.environment(f"{box.sandbox_id}-{number}", command.env)
            return await (_run_left if command.outlives else _run_watched)(box, command, words, env, number)
    except (OSError, ValueError) as error:
        return SandboxExecResult("", f"the command could not be started: {error}", FAULT_CODE, "sandbox")


def around(
    box: Box,
    words: Sequence[str | bytes],
    cwd: Path,
    timeout_s: float | None,
    *,
    outlives: bool,
    keeps_input: bool = False,
) -> list[str | bytes]:
    """Return the words that run `words` in the sandbox, within its limits.

    Without `keeps_input`, the input of a sandbox without namespaces is the lifeline of its commands.
    """
    isolated = box.holder is not None
    limits = box.limits.script(cpu_seconds(timeout_s, box.processors), bound_processes=box.isolation.counts_processes)
    script = (IN_NAMESPACES if isolated or keeps_input else PLAIN).format(limits=limits)
    inner = ["/bin/sh", "-c", script, "sh", str(cwd)]
    outer = inner
    if box.holder is not None:
        outer = box.isolation.inside(box.holder.pid, inner, network=box.network, outlives=outlives)
    return [*outer, *words]


def shell() -> str:
    """Return the shell that commands are written for."""
    return shutil.which("bash") or "/bin/sh"


async def _run_watched(
    box: Box, command: Command, words: list[str | bytes], env: Mapping[str, str], number: int
) -> SandboxExecResult:
    watched = await Watched.start(
        words,
        env,
        stdin=_lifeline(box),
        stdout=PIPE,
        stderr=PIPE,
        most_kept=MOST_KEPT_BYTES,
        most_printed=MOST_PRINTED_BYTES,
    )
    box.began(watched)
    try:
        in_time = await _in_time(watched, command.timeout_s)
        code = watched.code
    finally:
        await _end_all(box, watched, number, outlives=False)
    return _result(watched, watched.out.text(), watched.err.text(), code, in_time=in_time, box=box, command=command)


async def _run_left(
    box: Box, command: Command, words: list[str | bytes], env: Mapping[str, str], number: int
) -> SandboxExecResult:
    with TemporaryFile(dir=box.own) as out, TemporaryFile(dir=box.own) as err:
        watched = await Watched.start(words, env, stdin=_lifeline(box), stdout=out, stderr=err)
        box.began(watched)
        try:
            in_time = await _in_time(watched, command.timeout_s)
        except BaseException:
            await _end_all(box, watched, number, outlives=True)
            raise
        if not in_time:
            await _end_all(box, watched, number, outlives=True)
        box.running.discard(watched)
        box.left.append(watched)
        printed, said = [await asyncio.to_thread(_printed, file) for file in (out, err)]
    return _result(watched, printed, said, watched.code, in_time=in_time, box=box, command=command)


async def _in_time(watched: Watched, timeout_s: float | None) -> bool:
    try:
        async with asyncio.timeout(timeout_s):
            await watched.over()
    except TimeoutError:
        return False
    return True


async def _end_all(box: Box, watched: Watched, number: int, *, outlives: bool) -> None:
    """Kill what a command started, whether it ended or not."""
    box.running.discard(watched)
    if box.holder is not None:
        await _end_first(watched)
    end_group(watched.pid)
    if box.holder is None or outlives:
        marker = f"{COMMAND_VARIABLE}={box.sandbox_id}-{number}"
        await asyncio.to_thread(end_marked, marker, watched.pid)
    await watched.end()


async def _end_first(watched: Watched) -> None:
    """Kill the first process of a command's own numbers, if there is one, and wait for the end of all below it."""
    firsts = [first for own in children_of(watched.pid) for first in children_of(own)] if watched.code is None else []
    for first in firsts:
        with suppress(ProcessLookupError):
            os.kill(first, signal.SIGKILL)
    with suppress(TimeoutError):
        async with asyncio.timeout(END_TIMEOUT_S if firsts else 0):
            await watched.exited()


def _result(
    watched: Watched, out: str, err: str, code: int | None, *, in_time: bool, box: Box, command: Command
) -> SandboxExecResult:
    if not in_time:
        return SandboxExecResult(out, f"{err}\nno end within {command.timeout_s} s".lstrip(), TIMEOUT_CODE, "timeout")
    if watched.flooded:
        said = f"ended after {MOST_PRINTED_BYTES} bytes of output"
        return SandboxExecResult(out, f"{err}\n{said}".lstrip(), FAULT_CODE, "output_limit")
    if code and not box.alive:
        return SandboxExecResult(out, f"{err}\nthe sandbox ended".lstrip(), FAULT_CODE, "sandbox")
    return SandboxExecResult(out, err, FAULT_CODE if code is None else code)


def _lifeline(box: Box) -> Stream:
    return DEVNULL if box.holder is not None else PIPE


@asynccontextmanager
async def _script(box: Box, command: Command) -> AsyncIterator[list[str | bytes]]:
    """Give the words of the shell that runs a command; a long command lies in a file for as long as it runs."""
    text = command.text.encode("utf-8", errors="surrogatepass")
    if len(text) <= MOST_ARGUMENT_BYTES:
        yield [shell(), "-c", text]
        return
    path = await asyncio.to_thread(_written, box.own, text)
    try:
        yield [shell(), path]
    finally:
        with suppress(OSError):
            await asyncio.to_thread(os.unlink, path)


def _written(folder: Path, text: bytes) -> str:
    descriptor, path = mkstemp(suffix=".sh", dir=folder)
    with os.fdopen(descriptor, "wb") as file:
        file.write(text)
    return path


def _printed(file: IO[bytes]) -> str:
    """Return what is in a file by now, however fast a service goes on printing into it.

    The position is the program's too, so it is left alone.
    """
    captured = Captured(MOST_KEPT_BYTES)
    end = os.fstat(file.fileno()).st_size
    while captured.total < end and (piece := os.pread(file.fileno(), PIECE_BYTES, captured.total)):
        captured.add(piece)
    return captured.text()
