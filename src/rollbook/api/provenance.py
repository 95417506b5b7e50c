"""Who ran a session: host, process, version, commit and command line, with secrets masked.

Rules:
* A secret on a command line is replaced before anything keeps it.
* The commit is read from the folder's own files; no program is started.

Source: collection.md §1.8.
"""

import importlib.metadata
import os
import socket
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from rollbook.clock import Clock, timestamp
from rollbook.records.manifest import SessionEntry
from rollbook.recovery.credentials import MARKER, names_credential, without_credentials

_HASH_SHOWN: Final = 40


def session_entry(number: int, command: Sequence[str], clock: Clock, drift: Sequence[str] = ()) -> SessionEntry:
    """Return what the manifest says of a session that opens now in this process."""
    return SessionEntry(
        number=number,
        opened_at=timestamp(clock.now()),
        host=socket.gethostname(),
        pid=os.getpid(),
        version=importlib.metadata.version("rollbook"),
        git=git_commit(Path.cwd()),
        command=tuple(masked_command(command)),
        drift=tuple(drift),
    )


def masked_command(command: Sequence[str]) -> Iterator[str]:
    """Yield a command line's words without the secrets in them."""
    flags = without_credentials(list(command))
    for word in flags if isinstance(flags, list) else ():
        name, equals, _ = str(word).partition("=")
        secret = equals and names_credential(name.lstrip("+~-").rsplit(".", 1)[-1])
        yield f"{name}={MARKER}" if secret else str(word)


def git_commit(folder: Path) -> str | None:
    """Return the commit that is checked out in `folder` or above it, as far as plain files tell."""
    for parent in (folder, *folder.parents):
        head = parent / ".git" / "HEAD"
        if head.is_file():
            return _commit_of(head)
    return None


def _commit_of(head: Path) -> str | None:
    try:
        said = head.read_text(encoding="utf-8").strip()
        if not said.startswith("ref: "):
            return said[:_HASH_SHOWN]
        loose = head.parent / said.removeprefix("ref: ")
        return loose.read_text(encoding="utf-8").strip()[:_HASH_SHOWN]
    except (OSError, UnicodeDecodeError):
        return None
