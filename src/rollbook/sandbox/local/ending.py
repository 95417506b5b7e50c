"""The end of processes: all of them, whatever they did to get away.

Rules:
* A process group is ended in one step; nothing in it can run away from that by forking.
* Where there are no namespaces, who left the group is found by the session and by a variable in its environment. Who
  also emptied its environment gets away.
* Looking again stops when nobody is found, or after a bounded number of rounds.
"""

import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

PROC: Final = Path("/proc")
MOST_ROUNDS: Final = 50
SESSION_FIELD: Final = 3
"""Where the session stands in `/proc/<pid>/stat`, counted after the name."""


def end_group(group: int) -> None:
    """Kill every process of a group."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


def children_of(process: int) -> list[int]:
    """Return the children of a process's first thread."""
    try:
        return [int(child) for child in (PROC / f"{process}/task/{process}/children").read_text().split()]
    except OSError:
        return []


def end_marked(marker: str, session: int | None = None) -> int:
    """Kill every process that carries `marker` (`NAME=value`) or belongs to `session`; return how many were found."""
    ended = 0
    for _ in range(MOST_ROUNDS):
        found = list(_marked(marker.encode(), session))
        if not found:
            break
        for process in found:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(process, signal.SIGKILL)
        ended += len(found)
    return ended


def _marked(marker: bytes, session: int | None) -> Iterator[int]:
    for process in _others():
        with suppress(OSError, ValueError, IndexError):
            state, its_session = _state_and_session(process)
            if state in "ZX":
                continue
            if its_session == session or marker in (PROC / str(process) / "environ").read_bytes().split(b"\0"):
                yield process


def _others() -> Iterator[int]:
    with suppress(OSError):
        for name in os.listdir(PROC):  # noqa: PTH208  tens of thousands of entries
            if name.isdigit() and int(name) != os.getpid():
                yield int(name)


def _state_and_session(process: int) -> tuple[str, int]:
    text = (PROC / str(process) / "stat").read_text(encoding="utf-8", errors="replace")
    fields = text.rpartition(")")[2].split()
    return fields[0], int(fields[SESSION_FIELD])
