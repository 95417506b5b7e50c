"""What `gym env start` began, written down so that `gym env stop` can end it from another terminal.

Rules:
* A process is named by its id and the moment it started: an id that was given to another program is never signalled.
* The file and its folder belong to the user alone.
* There is one file for each head server address.

Source: servers.md §2.3, §10.2.
"""

import json
import os
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from rollbook.config.types import BaseServerConfig
from rollbook.errors import ServingError


@dataclass(frozen=True, slots=True)
class KnownProcess:
    """A process that can be told from a later one with the same id. `started` is the system's own mark."""

    name: str
    pid: int
    started: str

    @property
    def alive(self) -> bool:
        """Whether this very process still runs."""
        return start_mark(self.pid) == self.started


@dataclass(frozen=True, slots=True)
class EnvironmentState:
    """A launcher and the servers that it started."""

    launcher: KnownProcess
    servers: tuple[KnownProcess, ...]


def start_mark(pid: int) -> str | None:
    """Return what the system says of when `pid` started; None when there is no such process, or it is a zombie."""
    stat = Path(f"/proc/{pid}/stat")
    if stat.parent.parent.joinpath("self").exists():
        try:
            fields = stat.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        except OSError:
            return None
        return None if fields[0] == "Z" else fields[19]
    found = subprocess.run(["ps", "-o", "lstart=", "-p", str(pid)], capture_output=True, text=True, check=False)  # noqa: S603, S607  a number, and the system's own ps
    return found.stdout.strip() or None


def known_process(name: str, pid: int) -> KnownProcess:
    """Return a process that runs now."""
    return KnownProcess(name, pid, start_mark(pid) or "")


def default_state_dir() -> Path:
    """Return the user's own folder for state files.

    Raises:
        ServingError: the folder is another user's.

    """
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    base = Path(runtime) if runtime and Path(runtime).is_dir() else Path(tempfile.gettempdir())
    folder = base / f"rollbook-{os.getuid()}"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if folder.is_symlink() or folder.stat().st_uid != os.getuid():
        raise ServingError(f"{folder} belongs to another user; set XDG_RUNTIME_DIR to a folder of your own")
    return folder


def state_path(head: BaseServerConfig, state_dir: Path | None = None) -> Path:
    """Return the state file of the environment behind `head`."""
    return (state_dir or default_state_dir()) / f"head-{head.host}-{head.port}.json"


def write_state(path: Path, launcher: KnownProcess, servers: Sequence[KnownProcess]) -> None:
    """Write a state file that the user alone can read.

    Raises:
        ServingError: it cannot be written.

    """
    text = json.dumps({"launcher": asdict(launcher), "servers": [asdict(server) for server in servers]})
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise ServingError(
            f"{path} cannot be written ({error.strerror}); set XDG_RUNTIME_DIR to a folder of your own"
        ) from error


def read_state(path: Path) -> EnvironmentState | None:
    """Return what a state file says; None when there is none.

    Raises:
        ServingError: the file holds something else.

    """
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        return EnvironmentState(
            KnownProcess(**found["launcher"]), tuple(KnownProcess(**server) for server in found["servers"])
        )
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError) as error:
        raise ServingError(f"{path} is no state file of `gym env start` ({error}); remove it") from error
