"""The files that requirement lines name, and what tells that one of them changed.

Rules:
* A file of bounds counts with all that it includes; a folder with what it is built from; an editable one with its
  project files alone, since its code is read where it lies.
* What no line names is not looked at: indexes, commits and archives from elsewhere are told by their address.
* What a folder gathers while it is used is no source: hidden files, compiled ones, builds, environments.

Source: servers.md §2.3; PEP 508, PEP 610.
"""

import hashlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from rollbook.servers.serving.project_file import project_name
from rollbook.servers.serving.requirement_lines import asked, named_files

_PROJECT_FILES: Final = ("pyproject.toml", "setup.py", "setup.cfg")
_SOURCES: Final = "src"
_GATHERED: Final = frozenset({"__pycache__", "build", "dist", "node_modules"})
_ENVIRONMENT: Final = "pyvenv.cfg"
_READ_BYTES: Final = 1 << 20


def sources_digest(lines: Iterable[str]) -> str:
    """Return what changes when a file changes that `lines` name; local places in them are absolute."""
    found = hashlib.sha256()
    for path in dict.fromkeys(path for line in lines for path in sources_of(line)):
        found.update(f"{path}\0{_stamp(path)}\n".encode())
    return found.hexdigest()


def sources_of(line: str) -> Iterator[Path]:
    """Yield the files that what `line` names is installed from, in one order; none for what lies elsewhere."""
    if line.startswith("-") and not line.startswith("-e "):
        yield from named_files(line)
        return
    place = _local(line)
    if place is None:
        return
    if place.is_file():
        yield place
        return
    yield from (place / name for name in _PROJECT_FILES if (place / name).is_file())
    if not line.startswith("-e "):
        yield from _built_from(place)


def built_packages(lines: Iterable[str]) -> tuple[str, ...]:
    """Return the names of the packages that `lines` have built from a folder; empty for one whose name is not told."""
    return tuple(_package(line, place) for line in lines if (place := _built(line)) is not None)


def _package(line: str, folder: Path) -> str:
    return asked(line, folder).name or project_name(folder / "pyproject.toml") or ""


def _built(line: str) -> Path | None:
    """Return the folder that a line has a package built from, if it has."""
    place = None if line.startswith("-") else _local(line)
    return place if place is not None and place.is_dir() else None


def _local(line: str) -> Path | None:
    """Return the local path that a line names, if it names one."""
    place = line.removeprefix("-e ").partition("[")[0] if line.startswith("-e ") else asked(line, Path()).place
    parts = urlsplit(place)
    if parts.scheme == "file":
        return Path(unquote(parts.path))
    return Path(place) if place and not parts.scheme else None


def _built_from(folder: Path) -> Iterator[Path]:
    """Yield what may go into a package: all below `src` where there is one, else all of the folder."""
    below = folder / _SOURCES if (folder / _SOURCES).is_dir() else folder
    for here, folders, files in os.walk(below):
        folders[:] = sorted(name for name in folders if _is_source(Path(here, name)))
        yield from (Path(here, name) for name in sorted(files) if not name.startswith(".") and name[-4:] != ".pyc")


def _is_source(folder: Path) -> bool:
    gathered = folder.name.startswith(".") or folder.name in _GATHERED or folder.suffix == ".egg-info"
    return not gathered and not (folder / _ENVIRONMENT).exists()


def _stamp(path: Path) -> str:
    """Return what tells a file from what it was: its content, or of a large one its size and time."""
    try:
        told = path.stat()
        if told.st_size > _READ_BYTES:
            return f"{told.st_size} {told.st_mtime_ns}"
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return ""
