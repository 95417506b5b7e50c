"""The end of a file that was being written when its writer died.

Rules:
* Complete lines are never altered.
* A last line that is whole JSON and lacks only its newline is completed; anything else after the last newline is cut
  off and kept in `<name>.torn`.

Source: collection.md §5.3, §21.7 (a).
"""

import os
from pathlib import Path
from typing import Final

import msgspec

from rollbook.ledger.projection import BOM
from rollbook.ledger.whole_file import sync_folder
from rollbook.records.nesting import not_too_deep

_CHUNK: Final = 1 << 20


class TailRepair(msgspec.Struct, frozen=True):
    """What was done to the end of `path`: `cut` bytes moved to `kept_in`, or a newline added."""

    path: Path
    cut: int = 0
    kept_in: Path | None = None

    @property
    def told(self) -> str:
        """What a person should know about it."""
        if self.kept_in is None:
            return f"{self.path}: the last line was whole and lacked its newline; it was completed"
        return f"{self.path}: {self.cut} bytes of a line that was never committed were moved to {self.kept_in}"


def repair_tail(path: Path) -> TailRepair | None:
    """Make `path` end in a newline, and say what was done; None when there was nothing to do."""
    if not path.exists() or path.stat().st_size == 0:
        return None
    with path.open("r+b") as file:
        start, tail = _unterminated(file.fileno())
        if not tail:
            return None
        if is_whole_row(tail, starts_file=start == 0):
            os.lseek(file.fileno(), 0, os.SEEK_END)
            os.write(file.fileno(), b"\n")
            os.fsync(file.fileno())
            return TailRepair(path)
    return keep_torn(path, start)


def whole_bytes(path: Path) -> int:
    """Return how many bytes of `path` are whole lines, a newline that alone is missing counted as if it were there."""
    if not path.exists():
        return 0
    with path.open("rb") as file:
        start, tail = _unterminated(file.fileno())
    return start + len(tail) + 1 if tail and is_whole_row(tail, starts_file=start == 0) else start


def torn_of(path: Path) -> Path:
    """Return where what is cut off `path` is kept."""
    return path.with_name(f"{path.name}.torn")


def keep_torn(path: Path, size: int) -> TailRepair | None:
    """Cut `path` to its first `size` bytes, and keep what lay behind them in `<name>.torn`."""
    if path.stat().st_size <= size:
        return None
    torn = torn_of(path)
    with path.open("r+b") as file, torn.open("ab") as kept:
        file.seek(size)
        tail = file.read()
        kept.write(tail + b"\n")
        kept.flush()
        os.fsync(kept.fileno())
        os.ftruncate(file.fileno(), size)
        os.fsync(file.fileno())
    sync_folder(path.parent)
    return TailRepair(path, len(tail), torn)


def _unterminated(descriptor: int) -> tuple[int, bytes]:
    end = os.fstat(descriptor).st_size
    tail = b""
    start = end
    while start > 0:
        begin = max(0, start - _CHUNK)
        chunk = os.pread(descriptor, start - begin, begin)
        newline = chunk.rfind(b"\n")
        if newline >= 0:
            return begin + newline + 1, chunk[newline + 1 :] + tail
        tail = chunk + tail
        start = begin
    return 0, tail


def is_whole_row(tail: bytes, *, starts_file: bool) -> bool:
    """Whether what follows the last newline of a file, or is all of it, is a row that lacks its newline alone."""
    try:
        row = msgspec.json.decode(not_too_deep(tail.removeprefix(BOM) if starts_file else tail))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return isinstance(row, dict)
