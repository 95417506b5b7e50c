"""What came of a collation: its files, and the data sets that went into each.

Rules:
* Values and places alone; reading them loads nothing of what made them.
"""

from pathlib import Path

import msgspec


def metrics_path(rows: Path) -> Path:
    """Return where the metrics of a file of rows lie."""
    return rows.with_name(f"{rows.stem}_metrics.json")


def digest_path(rows: Path) -> Path:
    """Return where the digest of the rows of a collation lies."""
    return rows.with_name(f"{rows.name}.sha256")


def collated_files(rows: Path) -> tuple[Path, ...]:
    """Return what a collation writes for a file of rows: the rows, what they amount to, and their digest."""
    return rows, metrics_path(rows), digest_path(rows)


class CollatedDataset(msgspec.Struct, frozen=True):
    """A data set that went into a file: how many rows it holds, how often each was written, and with which prompt."""

    name: str
    instance: str
    path: Path
    rows: int
    num_repeats: int
    prompt: str | None = None


class CollatedType(msgspec.Struct, frozen=True):
    """One file of rows, of the data sets of one type."""

    type: str
    path: Path
    metrics: Path
    rows: int
    datasets: tuple[CollatedDataset, ...]


class Collated(msgspec.Struct, frozen=True):
    """What a collation came to."""

    types: tuple[CollatedType, ...]
    notes: tuple[str, ...] = ()
