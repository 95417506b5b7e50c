"""Planned files → disk: all of them or none, and nothing that is there is changed.

Rules:
* A file that is there with the same text is left; one with another text is a conflict, and conflicts write nothing.
* Files are written beside their place first and put there whole; when that fails, what was put is taken away again.

Source: servers.md §10.2.
"""

import os
import shutil
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import Final

from rollbook.errors import ConfigError, ScaffoldConflictError

_STAGE: Final = ".gym-env-init-"


def write_new_files(root: Path, planned: Mapping[PurePosixPath, str], hint: str = "") -> tuple[Path, ...]:
    """Write what is not there yet and return its paths; none when everything is up to date.

    `hint` ends the message about conflicts.

    Raises:
        ScaffoldConflictError: files are there with other texts; names all of them. Nothing was written.
        ConfigError: a folder is needed where a file is, or the other way round; nothing was written.
        OSError: a file could not be written; nothing is left of the others.

    """
    absent = {root / path: text for path, text in planned.items() if not os.path.lexists(root / path)}
    _refuse_what_stands_in_the_way(root, planned)
    differing = [path for path, text in planned.items() if root / path not in absent and _text(root / path) != text]
    if differing:
        named = "\n  ".join(str(root / path) for path in differing)
        raise ScaffoldConflictError(
            f"these files are there with other contents, and nothing was written:\n  {named}{hint}"
        )
    if absent:
        _write_all(root, absent)
    return tuple(absent)


def _refuse_what_stands_in_the_way(root: Path, planned: Mapping[PurePosixPath, str]) -> None:
    for path in planned:
        for above in (root / path).parents:
            if above == root:
                break
            if above.exists() and not above.is_dir():
                raise ConfigError(f"{above} is a file where a folder is needed; move it, or choose another name")
        if (root / path).is_dir():
            raise ConfigError(f"{root / path} is a folder where a file is needed; move it, or choose another name")


def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8")
    except (UnicodeDecodeError, FileNotFoundError):  # a link to nothing is something else, too
        return None


def _write_all(root: Path, absent: Mapping[Path, str]) -> None:
    stage = Path(tempfile.mkdtemp(prefix=_STAGE, dir=root))
    put: list[Path] = []
    try:
        staged = [(_staged(stage / str(number), text), path) for number, (path, text) in enumerate(absent.items())]
        for source, path in staged:
            _make_folders(root, path.parent, put)
            _put(source, path)
            put.append(path)
    except BaseException:
        _take_away(put)
        raise
    finally:
        shutil.rmtree(stage, ignore_errors=True)


def _staged(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8", newline="\n")
    return path


def _make_folders(root: Path, folder: Path, put: list[Path]) -> None:
    missing = [above for above in (folder, *folder.parents) if above != root and not above.exists()]
    for above in reversed(missing):
        above.mkdir()
        put.append(above)


def _put(source: Path, path: Path) -> None:
    """Give a staged file its name; one that appeared there meanwhile is a conflict."""
    try:
        try:
            os.link(source, path)
        except FileExistsError:
            raise
        except OSError:
            _copy(source, path)
    except FileExistsError:
        raise ScaffoldConflictError(f"{path} appeared meanwhile; nothing was written. Run the command again") from None


def _copy(source: Path, path: Path) -> None:
    """Write a file anew where none may be: not every file system has links, and a rename would replace one."""
    with path.open("xb") as file:
        try:
            file.write(source.read_bytes())
            file.flush()
        except BaseException:
            path.unlink()
            raise


def _take_away(put: list[Path]) -> None:
    for path in reversed(put):
        with suppress(OSError):
            if path.is_dir():
                path.rmdir()
            else:
                path.unlink()
