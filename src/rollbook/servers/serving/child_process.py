"""One server in a process of its own: how it is started, watched and stopped.

Rules:
* Configuration and secrets go through the environment, never through the command line.
* Each server leads a process group, so that what it started ends with it.
* A pipe that only the launcher holds open ends the server when the launcher dies, however it dies.
* Its output goes to a log file; a server that died is reported with the end of that file.

Source: servers.md §2.3.
"""

import errno
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from rollbook.config.names import (
    NEMO_GYM_CONFIG_DICT_ENV_VAR_NAME,
    NEMO_GYM_CONFIG_PATH_ENV_VAR_NAME,
    SERVER_TYPES,
)
from rollbook.config.roots import search_roots
from rollbook.config.types import ServerInstanceConfig
from rollbook.errors import MissingPackageError, ServerDiedError, ServingError
from rollbook.servers.serving.missing_field_names import name_left_out_in
from rollbook.servers.serving.requirements import missing_package
from rollbook.servers.serving.webserver import LAUNCHER_PIPE_ENV_VAR_NAME

_TAIL_BYTES: Final = 4096
_TAIL_LINES: Final = 20
_OWN_WORDS: Final = re.compile(r"^rollbook\.errors\.MissingPackageError: (?P<words>.*)", re.MULTILINE)
_NO_MODULE: Final = re.compile(r"^ModuleNotFoundError: No module named '(?P<name>[^'.]+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class LauncherPipe:
    """A pipe whose writing end only this process holds; readers see its end when this process is gone."""

    reading: int
    writing: int

    @classmethod
    def open(cls) -> Self:
        """Return a new pipe."""
        return cls(*os.pipe())

    def close(self) -> None:
        """Close both ends; whoever still waits on the pipe is told to end."""
        os.close(self.writing)
        os.close(self.reading)


class ServerProcess:
    """A server's process. `started_at` is in seconds since the epoch."""

    def __init__(
        self,
        instance: ServerInstanceConfig,
        process: "subprocess.Popen[bytes]",
        log_file: Path,
        started_at: float,
        python: Path | None = None,
    ) -> None:
        self.instance = instance
        self.log_file = log_file
        self.started_at = started_at
        self._process = process
        self._python = python

    @property
    def name(self) -> str:
        """The instance's name."""
        return self.instance.name

    @property
    def pid(self) -> int:
        """The process id, and the id of its group."""
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """What it ended with (a negative number is a signal); None while it runs."""
        return self._process.poll()

    @classmethod
    def spawn(
        cls,
        instance: ServerInstanceConfig,
        config_yaml: str,
        log_dir: Path,
        pipe: LauncherPipe,
        python: Path | None = None,
    ) -> Self:
        """Start the instance's entry point in its own folder, under `python` or else the interpreter that runs us.

        Raises:
            ServingError: there is no such entry point, or the configuration is too long for an environment variable.

        """
        folder = instance.dir_path
        if not (folder / instance.entrypoint).is_file():
            raise ServingError(
                f"server {instance.name!r} has no entry point {folder / instance.entrypoint}; check its name and "
                "entrypoint, or add its root with --search-dir"
            )
        log_file = log_dir / f"{instance.name}.log"
        try:
            with log_file.open("ab") as log:
                process = subprocess.Popen(  # noqa: S603  the interpreter that runs us, on a file of the configuration
                    [str(python or sys.executable), instance.entrypoint],
                    cwd=folder,
                    env={**child_environment(instance.name, config_yaml, pipe), **entered(python)},
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    pass_fds=(pipe.reading,),
                    start_new_session=True,
                )
        except OSError as error:
            too_long = f": {len(config_yaml)} bytes of configuration are more than an environment variable holds"
            why = too_long if error.errno == errno.E2BIG else f" ({error.strerror}: {error.filename})"
            raise ServingError(f"server {instance.name!r} cannot be started{why}") from error
        return cls(instance, process, log_file, time.time(), python)

    def death(self, when: str) -> ServingError:
        """Return the error for a server that ended on its own; `when` says in which situation.

        It is a `MissingPackageError` when the server ended because a package is not installed.
        """
        tail = log_tail(self.log_file)
        said = _OWN_WORDS.search(tail)
        if said is not None:
            return MissingPackageError(said["words"])
        left_out = name_left_out_in(tail, self.instance.dir_path / self.instance.entrypoint)
        if left_out is not None:
            return left_out
        package = _NO_MODULE.search(tail)
        if package is not None and package["name"] not in SERVER_TYPES:
            return missing_package(package["name"], self.instance.dir_path, self._python)
        return self.ended(when)

    def ended(self, when: str) -> ServerDiedError:
        """Return the same for a server that had come up: what its log says of imports did not end it."""
        code = self.exit_code
        how = f"signal {signal.Signals(-code).name}" if code is not None and code < 0 else f"exit code {code}"
        tail = log_tail(self.log_file)
        return ServerDiedError(f"server {self.name!r} ended {when} with {how}; the end of {self.log_file}:\n{tail}")

    def signal_group(self, number: signal.Signals) -> None:
        """Send a signal to the server and to all that it started; a group that is gone is no error."""
        signal_group(self.pid, number)

    def reap(self) -> None:
        """Collect the exit code of a server that was killed."""
        self._process.wait()


def signal_group(pid: int, number: signal.Signals) -> None:
    """Send a signal to a process group; a group that is gone is no error."""
    try:
        os.killpg(pid, number)
    except (ProcessLookupError, PermissionError):
        return


def child_environment(name: str, config_yaml: str, pipe: LauncherPipe) -> Mapping[str, str]:
    """Return the environment of the server `name`."""
    roots = [str(root) for root in search_roots()]
    inherited = [entry for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry]
    return {
        **os.environ,
        NEMO_GYM_CONFIG_DICT_ENV_VAR_NAME: config_yaml,
        NEMO_GYM_CONFIG_PATH_ENV_VAR_NAME: name,
        LAUNCHER_PIPE_ENV_VAR_NAME: str(pipe.reading),
        "PYTHONPATH": os.pathsep.join(dict.fromkeys(roots + inherited)),
        "PYTHONUNBUFFERED": "1",
    }


def entered(python: Path | None) -> Mapping[str, str]:
    """Return the variables of a virtual environment that is entered; `python` is its interpreter."""
    if python is None:
        return {}
    folder = str(python.parent)
    return {
        "VIRTUAL_ENV": str(python.parent.parent),
        "PATH": os.pathsep.join([folder, *filter(None, [os.environ.get("PATH")])]),
    }


def log_tail(path: Path) -> str:
    """Return the last lines of a log file; empty when there is none."""
    if not path.is_file():
        return ""
    with path.open("rb") as log:
        log.seek(max(0, path.stat().st_size - _TAIL_BYTES))
        lines = log.read().decode(errors="replace").splitlines()
    return "\n".join(lines[-_TAIL_LINES:])
