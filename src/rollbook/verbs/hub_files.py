"""A data set's files as the hub tells of them, held against what a hub may say before anything is made of it.

Rules:
* What the hub answers is somebody's text: it becomes a path or an address only once it has the form that it is to have.
* The name of a file in the making is a digest of ours; none of the hub's words is in it.
"""

import hashlib
import re
from typing import Final

import msgspec

from rollbook.errors import HubError

_COMMIT: Final = re.compile("[0-9a-f]{40}")
_SHA256: Final = re.compile("[0-9a-f]{64}")
_LONGEST: Final = 1024
_LONGEST_PART: Final = 200
_SHOWN: Final = 60


class RemoteFile(msgspec.Struct, frozen=True):
    """A file of a data set at one commit. `sha256` is known of large ones, `blob` (git's own digest) of the others."""

    name: str
    size: int | None
    blob: str | None
    sha256: str | None


def part_name(repo_id: str, commit: str, file: RemoteFile) -> str:
    """Return what the file is called that holds what came of `file` so far."""
    told = (repo_id, commit, file.name, file.sha256 or file.blob or "")
    return hashlib.sha256("\0".join(told).encode()).hexdigest() + ".part"


def commit_of(sha: object, what: str) -> str:
    """Return the commit that the hub names.

    Raises:
        HubError: it names none.

    """
    if not _is_like(sha, _COMMIT):
        raise HubError(f"{what}: the hub names no commit, but {_shown(sha)}; look at HF_ENDPOINT")
    return str(sha)


def refuse_strange(file: RemoteFile, what: str) -> None:
    """Refuse a file of which the hub tells what no hub does.

    Raises:
        HubError: its name leaves the data set or is no name, its size is none, or a digest is none.

    """
    size = file.size
    right = {
        "name": _is_name(file.name),
        "size": size is None or (type(size) is int and size >= 0),
        "blob": file.blob is None or _is_like(file.blob, _COMMIT),
        "sha256": file.sha256 is None or _is_like(file.sha256, _SHA256),
    }
    wrong = [f"{key} {_shown(getattr(file, key))}" for key, is_right in right.items() if not is_right]
    if wrong:
        raise HubError(
            f"{what}: the hub tells of a file with the {', '.join(wrong)}; it is not fetched. See HF_ENDPOINT"
        )


def _is_like(text: object, pattern: re.Pattern[str]) -> bool:
    return isinstance(text, str) and pattern.fullmatch(text) is not None


def _is_name(name: object) -> bool:
    """Whether it is a path below the data set that a file system can hold."""
    if not isinstance(name, str) or not name.isprintable() or len(name) > _LONGEST:
        return False
    parts = name.split("/")
    return all(0 < len(part.encode()) <= _LONGEST_PART and part not in {".", ".."} for part in parts)


def _shown(value: object) -> str:
    return ascii(str(value)[:_SHOWN])
