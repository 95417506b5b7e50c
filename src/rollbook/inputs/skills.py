"""Skills: a folder of instructions that a whole run is given, named by content.

Rules:
* The hash covers every file's path and bytes, so that two runs with the same hash saw the same skills.

Source: servers.md §8.8.
"""

import hashlib
import shutil
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from rollbook.errors import InputError


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
    for file in sorted(file for file in path.rglob("*") if file.is_file()):
        digest.update(file.relative_to(path).as_posix().encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()[:12]


def _skill(file: Path) -> SkillRef:
    import yaml  # noqa: PLC0415  skills are rare; their parser is not paid by every run

    parts = file.read_text(encoding="utf-8").split("---", 2)
    try:
        front = yaml.safe_load(parts[1]) if len(parts) == len(("", "front", "body")) else None
        return SkillRef.model_validate(front)
    except (yaml.YAMLError, ValueError) as error:
        raise InputError(f"{file}: no front matter with a `name` between two --- lines") from error
