"""Files that appear whole or not at all.

Rules:
* A temporary file in the same folder, fsync, rename, fsync of the folder; whatever goes wrong, the old file stays.
"""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO


class WholeFile:
    """A file in the making: written aside, and in place only once it is committed."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".tmp", dir=path.parent)
        self._path = path
        self._temporary = Path(name)
        self.file: BinaryIO = os.fdopen(descriptor, "wb", buffering=1 << 20)

    @property
    def aside(self) -> Path:
        """Where what was written lies until it is in place."""
        self.file.flush()
        return self._temporary

    def seal(self) -> None:
        """Make everything that was written durable, still aside."""
        self.file.flush()
        os.fsync(self.file.fileno())
        self.file.close()
        self._temporary.chmod(0o666 & ~_umask())

    def place(self) -> None:
        """Put the sealed file in place."""
        self._temporary.replace(self._path)
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


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
