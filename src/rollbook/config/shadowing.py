"""Whether the package that answers to a name is the only one that could.

Rules:
* What is installed is read off the import path's folders, by `.dist-info` and `.egg-info`; nothing is imported.
* A message says which distribution was found, where, and the two lines that would end the ambiguity.
"""

import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from rollbook.errors import ShadowedPackageError


def refuse_to_shadow(theirs: str, ours: str, folders: Iterable[str] | None = None) -> None:
    """Do nothing unless the distribution `theirs` is installed in one of `folders`, by default the import path.

    `ours` is the distribution whose package bears the same import name.

    Raises:
        ShadowedPackageError: `theirs` is installed; names both distributions, the folder and what to type.

    """
    for found in installed(theirs, sys.path if folders is None else folders):
        raise ShadowedPackageError(
            f"{theirs} is installed here ({found}), and {ours} would hide it: keep one of the two. "
            f"To use Rollbook's, type `pip uninstall {theirs} {ours}` and install {ours} again; "
            f"to use {theirs}, type `pip uninstall {ours}` and install {theirs} again"
        )


def installed(distribution: str, folders: Iterable[str]) -> Iterator[Path]:
    """Yield the metadata folder or file of `distribution` in each of `folders` that has one."""
    name = _normalised(distribution)
    for entry in (entry for folder in folders for entry in _entries(Path(folder))):
        if entry.suffix in {".dist-info", ".egg-info"} and _normalised(entry.stem.partition("-")[0]) == name:
            yield entry


def _normalised(distribution: str) -> str:
    return re.sub(r"[-_.]+", "_", distribution).lower()


def _entries(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except OSError:
        return []
