"""Files of a sandbox, reached from outside without leaving its directory.

Rules:
* The directory is the root: `/app/x` is `app/x` in it, as in a container; a path that begins with the directory's own
  is that path.
* Links are followed as long as they stay inside. A file is opened folder by folder without following any, so that a
  link that a running program swaps in is refused and not followed.
* Only plain files are read: a pipe or a device would hold the reader up.
"""

import os
import shutil
import stat
from pathlib import Path
from typing import IO, Final

from rollbook.errors import SandboxPathError

FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
WRITE: Final = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK
NEW_FILE_MODE: Final = 0o755
"""Uploads are often scripts, and nobody else is in the sandbox."""


def placed(root: Path, path: str, *, start: Path | None = None) -> Path:
    """Return where `path` lies, free of links, at or below `root`; a relative one counts from `start`, or `root`.

    Raises:
        SandboxPathError: it leads out, or no file can have such a name.

    """
    if "\0" in path or not _can_be_named(path):
        raise SandboxPathError(f"{path!r} is no path: it holds a character that no name of a file can hold")
    if not path.startswith("/"):
        wanted = (start or root) / path
    elif Path(path).is_relative_to(root):
        wanted = Path(path)
    else:
        wanted = root / os.path.normpath(path).lstrip("/")
    try:
        found = Path(os.path.realpath(wanted))
    except OSError as error:
        raise SandboxPathError(f"{path!r} cannot be followed: {error.strerror}") from error
    if not found.is_relative_to(root):
        raise SandboxPathError(f"{path!r} leads out of the sandbox; a sandbox's files lie below {root}")
    return found


def copy_in(root: Path, source: Path, target: str) -> None:
    """Write the content of `source` to `target` in the sandbox, with the folders above it."""
    with source.open("rb") as reader, _opened(root, target, WRITE) as writer:
        writer.truncate(0)
        shutil.copyfileobj(reader, writer)


def copy_out(root: Path, source: str, target: Path) -> None:
    """Write the content of `source` in the sandbox to `target`, with the folders above it."""
    with _opened(root, source, READ) as reader:
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("wb") as writer:
            shutil.copyfileobj(reader, writer)


def make_folder(root: Path, path: str) -> Path:
    """Make a folder of the sandbox and those above it; return where it lies."""
    found = placed(root, path)
    os.close(_folder(root, found, create=True))
    return found


def _can_be_named(path: str) -> bool:
    try:
        os.fsencode(path)
    except UnicodeEncodeError:
        return False
    return True


def _opened(root: Path, path: str, flags: int) -> IO[bytes]:
    found = placed(root, path)
    if found == root:
        raise SandboxPathError(f"{path!r} is the directory of the sandbox and no file in it")
    writes = flags == WRITE
    folder = _folder(root, found.parent, create=writes)
    try:
        descriptor = os.open(found.name, flags, NEW_FILE_MODE, dir_fd=folder)
    except FileNotFoundError:
        raise FileNotFoundError(f"no file {path!r} in the sandbox") from None
    except OSError as error:
        raise SandboxPathError(f"{path!r} in the sandbox cannot be opened: {error.strerror}") from error
    finally:
        os.close(folder)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise SandboxPathError(f"{path!r} in the sandbox is no file")
    return os.fdopen(descriptor, "wb" if writes else "rb")


def _folder(root: Path, path: Path, *, create: bool) -> int:
    """Return a descriptor of a folder at or below `root`, opened link by link from there."""
    descriptor = os.open(root, FOLDER)
    for name in path.relative_to(root).parts:
        descriptor = _next(descriptor, name, path, create=create)
    return descriptor


def _next(folder: int, name: str, path: Path, *, create: bool) -> int:
    try:
        if create and not _exists(folder, name):
            os.mkdir(name, dir_fd=folder)
        return os.open(name, FOLDER, dir_fd=folder)
    except FileNotFoundError:
        raise FileNotFoundError(f"no folder {path} in the sandbox") from None
    except OSError as error:
        raise SandboxPathError(f"{path} in the sandbox is no folder: {error.strerror}") from error
    finally:
        os.close(folder)


def _exists(folder: int, name: str) -> bool:
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True
