"""Skills: a folder of instructions that a whole run is given, named by content.

Rules:
* The hash covers every file's path and bytes, so that two runs with the same hash saw the same skills; files behind
  links are staged, and covered as well.
* Front matter opens the file, and is text as it is written: a version 1.10 is no number.

Source: servers.md §8.8.
"""

import hashlib
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict

from rollbook.errors import InputError

_FRONT_MATTER: Final = re.compile(r"\s*^---[ \t]*\n(.*?)^---[ \t]*$", re.DOTALL | re.MULTILINE)


class SkillRef(BaseModel):
    """One skill, as its front matter names it."""

    model_config = ConfigDict(defer_build=True)

    name: str
    description: str | None = None
    version: str | None = None


class SkillsRef(BaseModel):
    """Where a run's skills came from: `hash` is the first 12 hexadecimal digits of a SHA-256."""

    model_config = ConfigDict(defer_build=True)

    path: str
    hash: str
    skills: list[SkillRef]


def load_skills(path: str | Path) -> SkillsRef:
    """Read and hash the skills below `path`.

    Raises:
        InputError: no such folder, no skill in it, or a `SKILL.md` without front matter.

    """
    folder = Path(path)
    files = sorted(file for file in folder.glob("*/SKILL.md") if file.is_file())
    if not files:
        raise InputError(f"{path}: no skills found; expected <name>/SKILL.md below it")
    return SkillsRef(path=str(path), hash=_digest(folder), skills=[_skill(file) for file in files])


def stage_skills(path: str | Path, destination: str | Path) -> None:
    """Copy the skills below `path` to `destination`, which must not exist.

    Raises:
        InputError: no such folder, or the destination is there.

    """
    if not Path(path).is_dir():
        raise InputError(f"{path}: no such folder of skills; expected <name>/SKILL.md below it")
    if Path(destination).exists():
        raise InputError(f"{destination}: exists already; skills are staged into a new folder")
    shutil.copytree(path, destination)


def _digest(path: Path) -> str:
    digest = hashlib.sha256()
    for file in sorted(_files(path)):
        digest.update(file.relative_to(path).as_posix().encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()[:12]


def _files(folder: Path, above: frozenset[Path] = frozenset()) -> Iterator[Path]:
    """Yield every file below `folder`, behind links too; a link to a folder that it lies in is followed no further."""
    here = folder.resolve()
    if here in above:
        return
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from _files(entry, above | {here})
        elif entry.is_file():
            yield entry


def _skill(file: Path) -> SkillRef:
    import yaml  # noqa: PLC0415  skills are rare; their parser is not paid by every run

    try:
        found = _FRONT_MATTER.match(file.read_text(encoding="utf-8-sig"))
        front = yaml.load(found[1], yaml.BaseLoader) if found else None  # noqa: S506  it makes texts, and nothing else
        return SkillRef.model_validate(_without_empty(front))
    except (yaml.YAMLError, ValueError) as error:
        raise InputError(
            f"{file}: no front matter with a `name`, and perhaps a `description` and a `version`, between two --- "
            "lines at its top"
        ) from error


def _without_empty(front: object) -> object:
    return {key: value for key, value in front.items() if value != ""} if isinstance(front, dict) else front
