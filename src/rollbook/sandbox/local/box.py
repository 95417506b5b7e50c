"""One local sandbox: its directory, its namespaces, and what runs in it.

Rules:
* A command's environment is the sandbox's own; nothing of this process's goes in but the search path and the language.
* A command ends with everything that it started, unless it was asked to leave services behind.
* A sandbox ends in one order: programs first, then the directory.
* An end that has begun is gone through with, whoever stops waiting for it; what can be killed is killed at once.
"""

import asyncio
import itertools
import logging
import os
import signal
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import PIPE
from typing import Final, Protocol

from rollbook.clock import Clock, SystemClock
from rollbook.errors import SandboxCreateError
from rollbook.sandbox.local.ending import children_of, end_group, end_marked
from rollbook.sandbox.local.isolation import Isolation
from rollbook.sandbox.local.limits import Limits
from rollbook.sandbox.local.watched import Watched

SANDBOX_VARIABLE: Final = "ROLLBOOK_SANDBOX"
COMMAND_VARIABLE: Final = "ROLLBOOK_SANDBOX_COMMAND"
DEFAULT_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
FOLDER_FOR_TEMPORARY_FILES: Final = "tmp"
END_TIMEOUT_S: Final = 5
MOST_DELETIONS: Final = 3
"""A program that is being killed may still make a file."""
DELETE: Final = 'rm -rf -- "$1" || { chmod -R u+rwx -- "$1"; rm -rf -- "$1"; }'

LOG: Final = logging.getLogger(__name__)


class HangsUp(Protocol):
    """A terminal, as far as the end of a sandbox needs to know."""

    def hang_up(self) -> None:
        """Close our end."""


@dataclass
class Box:
    """A sandbox as this process knows it.

    `holder` is the process that holds its namespaces, where there are any. `left` are commands that were asked to leave
    services behind.
    """

    sandbox_id: str
    root: Path
    isolation: Isolation
    limits: Limits
    network: bool
    workdir: Path
    env: Mapping[str, str] = field(default_factory=dict)
    processors: float = 1.0
    holder: Watched | None = None
    running: set[Watched] = field(default_factory=set)
    left: list[Watched] = field(default_factory=list)
    terminals: dict[str, HangsUp] = field(default_factory=dict)
    expiry: "asyncio.Task[None] | None" = None
    ending: "asyncio.Task[None] | None" = None
    ended: bool = False
    clock: Clock = field(default_factory=SystemClock)
    numbers: "itertools.count[int]" = field(default_factory=itertools.count)

    @property
    def own(self) -> Path:
        """The directory beside it for what we write for its commands."""
        return own_folder(self.root)

    @property
    def marker(self) -> str:
        """What every program of the sandbox carries in its environment."""
        return f"{SANDBOX_VARIABLE}={self.sandbox_id}"

    @property
    def alive(self) -> bool:
        """Whether commands can run in it."""
        if self.ended or not self.root.is_dir():
            return False
        return self.holder is None or self.holder.code is None

    def environment(self, command_id: str, env: Mapping[str, str] | None) -> dict[str, str]:
        """Return the whole environment of a command."""
        own = {
            "PATH": os.environ.get("PATH", DEFAULT_PATH),
            "HOME": str(self.root),
            "LANG": os.environ.get("LANG", "C.UTF-8"),
            "TMPDIR": str(self.root / FOLDER_FOR_TEMPORARY_FILES),
        }
        given = {str(key): str(value) for key, value in {**self.env, **(env or {})}.items()}
        return own | given | {SANDBOX_VARIABLE: self.sandbox_id, COMMAND_VARIABLE: command_id}

    async def hold(self, timeout_s: float) -> None:
        """Make the namespaces, where this machine has any.

        Raises:
            SandboxCreateError: they could not be made in time.

        """
        if not self.isolation.namespaces:
            return
        words = self.isolation.holder(self.sandbox_id, self.limits.processes, network=self.network)
        env = self.environment("holder", None)
        try:
            self.holder = await Watched.start(words, env, stdin=PIPE, stdout=PIPE, stderr=PIPE)
            async with asyncio.timeout(timeout_s):
                ready = await self.holder.spoke()
        except OSError as error:
            why = str(error) or f"not ready within {timeout_s} s"
            raise SandboxCreateError(f"no process for a local sandbox: {why}") from error
        if not ready:
            raise SandboxCreateError(f"no namespaces for a local sandbox: {self.holder.err.text().strip()}")

    def expire_after(self, seconds: float) -> None:
        """End every program of the sandbox after `seconds`; its directory stays until it is closed."""
        self.expiry = asyncio.create_task(self._expire(seconds))

    def began(self, watched: Watched) -> None:
        """Count a process to the sandbox; one that begins while the sandbox ends is killed."""
        self.running.add(watched)
        if self.ended:
            end_group(watched.pid)

    def end(self) -> "asyncio.Task[None]":
        """Kill the programs of the sandbox; return the task that sees to the rest and deletes the directory.

        Whoever waits for it shields it, so that it is gone through with.
        """
        self._kill()
        if self.ending is None:
            self.ending = asyncio.create_task(self._end())
        return self.ending

    async def _end(self) -> None:
        try:
            await self._end_programs()
        finally:
            for terminal in self.terminals.values():
                terminal.hang_up()
            await asyncio.to_thread(_delete, self.root, self.own)

    def _kill(self) -> None:
        """Kill what can be named without a look around; no other program can be started from now on."""
        self.ended = True
        if self.expiry is not None and self.expiry is not asyncio.current_task():
            self.expiry.cancel()
        for watched in [*self.running, *(service for service in self.left if service.code is None)]:
            end_group(watched.pid)
        if self.holder is not None:
            _kill_first(self.holder)

    async def _end_programs(self) -> None:
        if self.holder is not None:
            await _end_holder(self.holder)
        elif not self.isolation.namespaces:
            await asyncio.to_thread(end_marked, self.marker)
        for watched in self.left:
            await watched.end()
        self.left.clear()

    async def _expire(self, seconds: float) -> None:
        await self.clock.sleep(seconds)
        self._kill()
        await self._end_programs()


def own_folder(root: Path) -> Path:
    """Return where what we write for the sandbox of `root` lies: where its programs have no business."""
    return root.with_name(f"{root.name}.own")


async def _end_holder(holder: Watched) -> None:
    """Kill the first process of a sandbox, with which the kernel ends all others, and wait for that."""
    _kill_first(holder)
    with suppress(TimeoutError):
        async with asyncio.timeout(END_TIMEOUT_S):
            await holder.exited()
    await holder.end()


def _kill_first(holder: Watched) -> None:
    for first in children_of(holder.pid) if holder.code is None else []:
        with suppress(ProcessLookupError):
            os.kill(first, signal.SIGKILL)
    holder.let_go()


def _delete(*folders: Path) -> None:
    for folder in folders:
        if not any(_deleted(folder) for _ in range(MOST_DELETIONS)):
            LOG.warning("the directory %s of a local sandbox could not be deleted", folder)


def _deleted(folder: Path) -> bool:
    subprocess.run(["/bin/sh", "-c", DELETE, "sh", str(folder)], capture_output=True, check=False)  # noqa: S603  fixed words
    return not folder.exists()
