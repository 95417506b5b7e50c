"""A run's aggregate metrics, read from their file.

Rules:
* A file that is written over several lines is read without its entries for single tasks where those are too many to
  hold; what is left out is said.

Source: collection.md §1.10, §9.2.
"""

from pathlib import Path
from typing import BinaryIO, Final

import msgspec

from rollbook.compare.metric_side import MetricSide, metric_side
from rollbook.errors import ConfigError, ConfigPathNotFoundError
from rollbook.records.nesting import not_too_deep
from rollbook.records.reading import UNREADABLE

LARGE: Final = 64 << 20
"""A file of more bytes is read without its entries for single tasks."""
_TASKS: Final = b'"group_level_metrics": ['


def read_metrics(path: Path, large: int = LARGE) -> MetricSide:
    """Return what an aggregate metrics file says.

    Raises:
        ConfigPathNotFoundError: no such file.
        ConfigError: it is none, or it is too large and on one line.

    """
    label = str(path)
    try:
        whole = path.stat().st_size <= large
        text = path.read_bytes() if whole else _without_tasks(path)
    except FileNotFoundError:
        raise ConfigPathNotFoundError(
            f"{path}: no aggregate metrics; `gym eval aggregate` writes them, and `gym dev compare` needs none"
        ) from None
    try:
        side = metric_side(label, msgspec.json.decode(not_too_deep(text)))
    except UNREADABLE as error:
        raise ConfigError(f"{path}: no aggregate metrics: {error}") from None
    if whole:
        return side
    told = f"{label}: more than {large >> 20} MB: flips are told from the rows alone"
    return MetricSide(side.label, side.entries, (*side.warnings, told))


def _without_tasks(path: Path) -> bytes:
    """Return an indented file without the lists of tasks, each of which ends at the depth where it began."""
    kept: list[bytes] = []
    with path.open("rb", buffering=1 << 20) as file:
        while line := file.readline(LARGE):
            begun = line.rstrip()
            if len(line) == LARGE:
                raise ConfigError(f"{path}: too large to be read on one line; write it with `gym eval aggregate`")
            if not begun.endswith(_TASKS):
                kept.append(line)
                continue
            depth = len(line) - len(line.lstrip())
            kept.append(begun + b"]" + (b"," if _skip(file, b" " * depth) else b"") + b"\n")
    return b"".join(kept)


def _skip(file: BinaryIO, margin: bytes) -> bool:
    """Read to the end of a list; return whether something follows it."""
    for line in file:
        if line.startswith(margin + b"]"):
            return line.rstrip().endswith(b",")
    return False
