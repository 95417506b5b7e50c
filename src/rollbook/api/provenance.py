"""Who ran a session: host, process, version, commit and command line, with secrets masked.

Rules:
* A secret on a command line is replaced before anything keeps it; a structure that cannot be read is replaced whole.
* A word that holds no secret stays as it was typed.
* The commit is read from the folder's own files; no program is started.

Source: collection.md §1.8.
"""

import importlib.metadata
import json
import os
import re
import socket
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from rollbook.clock import Clock, timestamp
from rollbook.config.overrides import parse_overrides
from rollbook.errors import ConfigError
from rollbook.records.manifest import SessionEntry
from rollbook.recovery.credentials import MARKER, names_credential, without_credentials

_HASH_SHOWN: Final = 40
_SECRET_WHEN_TYPED: Final = frozenset({"bearer", "keys", "pwd", "tokens"})
"""Names that say too little to leave them out of a digest; a person can type their values again."""
_BARE: Final = re.compile(r"[A-Za-z_./][A-Za-z0-9_./:@%*?|+-]*")
_WORDS: Final = frozenset({"true", "false", "null", "inf", "nan"})


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
    words = list(command)
    shown = without_credentials(list(words))
    for word, flag in zip(words, shown if isinstance(shown, list) else (), strict=True):
        yield MARKER if flag == MARKER else _masked_word(word, str(flag))


def _masked_word(word: str, shown: str) -> str:
    """Return `word`, of which `shown` is what it looks like as a flag or a text."""
    name, equals, value = word.partition("=")
    if equals and any(map(_is_secret, name.lstrip("+~-").split("."))):
        return f"{name}={MARKER}"
    if equals and value.lstrip().startswith(("{", "[")):
        return _masked_structure(word, name)
    return shown


def _masked_structure(word: str, name: str) -> str:
    try:
        (override,) = parse_overrides([word])
    except ConfigError:
        return f"{name}={MARKER}"
    hidden = without_credentials(_without_typed(override.value))
    return word if hidden == override.value else f"{name}={_typed(hidden)}"


def _without_typed(value: object) -> object:
    if isinstance(value, dict):
        return {key: MARKER if _is_secret(key) else _without_typed(part) for key, part in value.items()}
    return [_without_typed(part) for part in value] if isinstance(value, list) else value


def _is_secret(step: str) -> bool:
    return names_credential(step) or step.lower() in _SECRET_WHEN_TYPED


def _typed(value: object) -> str:
    """Return a value as an override has it."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{key}:{_typed(part)}" for key, part in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_typed, value)) + "]"
    if not isinstance(value, str):
        return json.dumps(value)
    bare = _BARE.fullmatch(value) and value.lower() not in _WORDS
    return value if bare else "'" + value.replace("'", "\\'") + "'"


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
