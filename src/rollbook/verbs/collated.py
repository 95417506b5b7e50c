"""What came of a collation: its files, and the data sets that went into each.

Rules:
* Values alone; reading them loads nothing of what made them.
"""

from pathlib import Path

import msgspec


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
