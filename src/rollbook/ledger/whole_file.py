"""Files that appear whole or not at all.

Rules:
* A temporary file in the same folder, fsync, rename, fsync of the folder; whatever goes wrong, the old file stays.
* Whoever writes one holds a lock on it. What a process left that died is nobody's, and goes with the next one of that
  path.
"""

import fcntl
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Final

_TEMPORARY: Final = ".tmp"


class WholeFile:
    """A file in the making: written aside, and in place only once it is committed."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        remove_left(path)
        descriptor, self._temporary = _held(path)
        self._path = path
        self._lock = os.dup(descriptor)
        self.file: BinaryIO = os.fdopen(descriptor, "wb", buffering=1 << 20)

    @property
    def aside(self) -> Path:
        """Where what was written lies until it is in place."""
        self.file.flush()
        return self._temporary

    def seal(self, mode: int | None = None) -> None:
        """Make everything that was written durable, still aside; without a mode it has that of new files."""
        self.file.flush()
        os.fsync(self.file.fileno())
        self.file.close()
        self._temporary.chmod(0o666 & ~_umask() if mode is None else mode)

    def place(self) -> None:
        """Put the sealed file in place."""
        self._temporary.replace(self._path)
        self._let_go()
        sync_folder(self._path.parent)

    def commit(self) -> None:
        """Seal the file and put it in place."""
        self.seal()
        self.place()

    def discard(self) -> None:
        """Leave no trace. After a commit there is nothing to discard."""
        with suppress(OSError):
            self.file.close()
        self._temporary.unlink(missing_ok=True)
        self._let_go()

    def _let_go(self) -> None:
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1


@contextmanager
def made_aside(path: Path) -> Iterator[WholeFile]:
    """Give a file in the making that leaves no trace unless the block puts it in place."""
    making = WholeFile(path)
    try:
        yield making
    finally:
        making.discard()


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """Give a file to write to that becomes `path` when the block ends, and leaves no trace when it raises."""
    with made_aside(path) as making:
        yield making.file
        making.commit()


def sync_folder(folder: Path) -> None:
    """Make renames and new names in `folder` durable."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def remove_left(path: Path) -> None:
    """Remove the temporary files of `path` that nobody holds; its folder is there."""
    for name in os.listdir(path.parent):  # noqa: PTH208  names alone are wanted, and there may be many
        is_one = name.startswith(f".{path.name}.") and name.endswith(_TEMPORARY)
        if is_one and "." not in name[len(path.name) + 2 : -len(_TEMPORARY)]:
            with suppress(OSError):
                _remove_free(path.parent / name)


def _held(path: Path) -> tuple[int, Path]:
    """Return a new temporary file of `path`, locked as far as its file system knows locks."""
    while True:
        descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=_TEMPORARY, dir=path.parent)
        _is_free(descriptor)
        if os.fstat(descriptor).st_nlink:
            return descriptor, Path(name)
        os.close(descriptor)  # taken for one that was left, before it was locked


def _remove_free(left: Path) -> None:
    descriptor = os.open(left, os.O_RDWR | os.O_NOFOLLOW)
    try:
        if _is_free(descriptor):
            left.unlink(missing_ok=True)
    finally:
        os.close(descriptor)


def _is_free(descriptor: int) -> bool:
    """Lock a file, and return whether that was possible: nobody else holds it."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
