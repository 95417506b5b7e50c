"""A virtual environment for what some components need, made once and kept.

Rules:
* Its name is a digest of all that goes into it: lines, overrides, the Python, what is installed of ours, and the files
  that any of the lines names.
* It is whole when its marker is there, which is written last; what has none is made anew.
* One process makes it, whoever else wants it waits; both are told, with the time that it took.
* The lock is the installer's too: where it outlives the process that started it, its folder is left to it.
* Requirements go to the installer in files, never on its command line.

Source: servers.md §2.3.
"""

import asyncio
import fcntl
import hashlib
import json
import os
import shutil
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import msgspec

from rollbook.errors import ServingError
from rollbook.servers.serving.deployment import Tell
from rollbook.servers.serving.install_command import RunCommand, run_command, shown_tail
from rollbook.servers.serving.installers import Installer
from rollbook.servers.serving.requirement_lines import without_credentials
from rollbook.servers.serving.requirement_sources import built_packages, sources_digest

_MARKER: Final = "made.json"
_LOCK_POLL_SECONDS: Final = 0.2
_PROGRESS_SECONDS: Final = 30.0
_DIGEST_CHARACTERS: Final = 20
_SHOWN_LINES: Final = 6


class Contents(msgspec.Struct, frozen=True):
    """What goes into an environment: lines of ours and of a component, options, overrides, and the Python.

    `python` is an interpreter's path or, for uv, a version; `version` names it for people and for the digest.
    """

    own: tuple[str, ...]
    packages: tuple[str, ...]
    options: tuple[str, ...]
    overrides: tuple[str, ...]
    python: str
    version: str

    @property
    def digest(self) -> str:
        """What tells it from every other environment; read anew each time, from the files that lines name too."""
        sources = sources_digest((*self.own, *self.packages, *self.options, *self.overrides))
        text = json.dumps([msgspec.to_builtins(self), sources])
        return hashlib.sha256(text.encode()).hexdigest()[:_DIGEST_CHARACTERS]

    def __str__(self) -> str:
        lines = [*self.own, *self.packages]
        rest = len(lines) - _SHOWN_LINES
        shown = without_credentials(", ".join(lines[:_SHOWN_LINES]))
        return shown + (f" and {rest} more" if rest > 0 else "")


class VirtualEnvironments(msgspec.Struct, frozen=True):
    """The environments under `folder`. `patience` is how long another process is waited for, in seconds.

    `tell` is told what goes on, `run` runs an installer's commands.
    """

    folder: Path
    installer: Installer
    tell: Tell
    run: RunCommand = run_command
    patience: float = 1800.0
    variables: Mapping[str, str] = {}

    async def python_for(self, contents: Contents, component: str) -> Path:
        """Return the interpreter of the environment with `contents`; it is made first where it is not there yet.

        Raises:
            ServingError: it cannot be made; shows the installer's last lines and where they are.

        """
        name = contents.digest
        place = self.folder / name
        if not _is_whole(place):
            async with self._locked(_lock_file(self.folder, name), place, component) as lock:
                if not _is_whole(place):
                    await self._make(contents, place, component, lock)
        return _python_in(place)

    @asynccontextmanager
    async def _locked(self, path: Path, place: Path, component: str) -> AsyncIterator[int]:
        """Hold the lock, or find that there is no need to; what an installer left behind does not hold it longer."""
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            await self._lock(descriptor, path, place, component)
            yield descriptor
        finally:
            fcntl.flock(descriptor, fcntl.LOCK_UN)
            os.close(descriptor)

    async def _lock(self, descriptor: int, path: Path, place: Path, component: str) -> None:
        began = time.monotonic()
        told = False
        while not _granted(descriptor) and not _is_whole(place):
            if not told:
                self.tell(f"another process makes the environment of {component}; waiting for it ({path})")
                told = True
            if time.monotonic() - began > self.patience:
                raise ServingError(
                    f"another process has been making the environment of {component} for more than "
                    f"{self.patience:g} s ({path}); end it, or allow more: ++uv_lock_timeout_seconds=<seconds>"
                )
            await asyncio.sleep(_LOCK_POLL_SECONDS)

    async def _make(self, contents: Contents, place: Path, component: str, lock: int) -> None:
        began = time.monotonic()
        _emptied(place)
        self.tell(
            f"making an environment for {component} with {self.installer.name}, Python {contents.version}: {contents} "
            f"(in {place})"
        )
        log = place / "install.log"
        commands = _commands(self.installer, contents, place)
        installing = asyncio.ensure_future(self._carried_out(commands, place, log, lock))
        try:
            await self._waited_for(installing, component, began, log)
        finally:
            installing.cancel()
            await asyncio.wait({installing})
        _write_whole(place / _MARKER, json.dumps(msgspec.to_builtins(contents), indent=1))
        self.tell(f"the environment of {component} is made ({time.monotonic() - began:.1f} s)")

    async def _waited_for(self, installing: "asyncio.Future[int]", component: str, began: float, log: Path) -> None:
        while not installing.done():
            await asyncio.wait({installing}, timeout=_PROGRESS_SECONDS)
            if not installing.done():
                last = shown_tail(log).rpartition("\n")[2].strip()
                self.tell(f"still making the environment of {component} ({time.monotonic() - began:.0f} s): {last}")
        code = installing.result()
        if code:
            raise ServingError(
                f"no environment can be made for {component}: {self.installer.name} ended with exit code {code} "
                f"(all of what it said: {log}):\n{shown_tail(log)}"
            )

    async def _carried_out(self, commands: Sequence[Sequence[str]], place: Path, log: Path, lock: int) -> int:
        for command in commands:
            try:
                code = await self.run(command, place, log, self.variables, (lock,))
            except OSError as error:
                raise ServingError(f"{command[0]} cannot be run: {error.strerror}") from error
            if code:
                return code
        return 0


def _commands(installer: Installer, contents: Contents, place: Path) -> Sequence[Sequence[str]]:
    """Write what is to be installed into `place`, and return the commands that install it."""
    requirements, overrides = place / "requirements.txt", place / "overrides.txt"
    lines = (*contents.options, *contents.own, *contents.packages)
    _write_whole(requirements, "".join(f"{line}\n" for line in lines))
    _write_whole(overrides, "".join(f"{line}\n" for line in contents.overrides))
    return installer.commands(
        contents.python,
        place / "venv",
        _python_in(place),
        requirements,
        overrides if contents.overrides else None,
        built=built_packages((*contents.own, *contents.packages, *contents.overrides)),
    )


def _emptied(place: Path) -> None:
    """Make `place` an empty folder of the user's alone."""
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(mode=0o700)


def _lock_file(folder: Path, name: str) -> Path:
    """Return the file that is locked while the environment `name` is made; its folder is there.

    Raises:
        ServingError: the folder cannot be written to.

    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ServingError(
            f"no environments can be made in {folder} ({error.strerror}); give another folder: ++uv_venv_dir=<folder>"
        ) from error
    return folder / f"{name}.lock"


def _is_whole(place: Path) -> bool:
    return (place / _MARKER).is_file()


def _python_in(place: Path) -> Path:
    return place / "venv" / "bin" / "python"


def _write_whole(path: Path, text: str) -> None:
    """Write a file that is there whole or not at all, for the user alone."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
    draft.replace(path)


def _granted(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
