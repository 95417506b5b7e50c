"""SHA-256 of files and of what is written to them.

Rules:
* Files are read in blocks; a digest of a prefix covers exactly the bytes that it names.
"""

import hashlib
from pathlib import Path
from typing import BinaryIO, Final

_BLOCK: Final = 1 << 20


class HashedFile:
    """Writes to a file and knows the digest and the length of what was written."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._digest = hashlib.sha256()
        self.size = 0

    def write(self, data: bytes) -> int:
        """Append `data`."""
        self._digest.update(data)
        self.size += len(data)
        return self._file.write(data)

    @property
    def sha256(self) -> str:
        """The digest of everything that was written."""
        return self._digest.hexdigest()


def sha256_of(path: Path, size: int | None = None) -> str:
    """Return the SHA-256 of `path`, or of its first `size` bytes."""
    digest, left = hashlib.sha256(), size
    with path.open("rb") as file:
        while left is None or left > 0:
            block = file.read(_BLOCK if left is None else min(_BLOCK, left))
            if not block:
                break
            digest.update(block)
            left = None if left is None else left - len(block)
    return digest.hexdigest()
