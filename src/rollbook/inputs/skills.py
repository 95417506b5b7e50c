"""Skills: a folder of instructions that a whole run is given, named by content.

Rules:
* The hash covers every file's path and bytes, so that two runs with the same hash saw the same skills; files behind
  links are staged, and covered as well.
* A run that recorded the hash of before keeps it: what its rows name their skills by does not change under it.
* Front matter is what the first two lines of dashes enclose, and text as it is written: a version 1.10 is no number.
  What is null or empty is not given.

Source: servers.md §8.8.
"""

import hashlib
import re
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict

from rollbook.errors import InputError

_FRONT_MATTER: Final = re.compile(r"^---[ \t]*\n(.*?)^---[ \t]*$", re.DOTALL | re.MULTILINE)
_NO_TEXT: Final = frozenset({"tag:yaml.org,2002:null", "tag:yaml.org,2002:merge"})
"""What a plain word of front matter can be besides text."""


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
    return SkillsRef(path=str(path), hash=_digest(folder, _files(folder)), skills=[_skill(file) for file in files])


def load_skills_of_run(path: str | Path, recorded: str | None) -> SkillsRef:
    """Read and hash the skills of a run; the hash that it `recorded` stays where it is one of theirs.

    Raises:
        InputError: as `load_skills` does.

    """
    found = load_skills(path)
    if recorded in {None, found.hash} or recorded != hash_before_links_were_followed(path):
        return found
    return found.model_copy(update={"hash": recorded})


def hash_before_links_were_followed(path: str | Path) -> str:
    """Return the hash of folders written before links were followed: what lies behind links to folders is not in it."""
    return _digest(Path(path), (file for file in Path(path).rglob("*") if file.is_file()))


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


def _digest(path: Path, files: Iterable[Path]) -> str:
    digest = hashlib.sha256()
    for file in sorted(files):
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
        found = _FRONT_MATTER.search(file.read_text(encoding="utf-8-sig"))
        return SkillRef.model_validate(_front(found[1]) if found else None)
    except (yaml.YAMLError, ValueError) as error:
        raise InputError(
            f"{file}: no front matter with a `name`, and perhaps a `description` and a `version`, between two lines "
            "of --- alone"
        ) from error


def _front(text: str) -> object:
    """Return what YAML says, its words as text; without keys that are given nothing."""
    import yaml  # noqa: PLC0415  as above

    loader = yaml.SafeLoader(text)
    rules = loader.yaml_implicit_resolvers.items()
    loader.yaml_implicit_resolvers = {start: [rule for rule in some if rule[0] in _NO_TEXT] for start, some in rules}
    try:
        front = loader.get_single_data()
    finally:
        loader.dispose()
    return {key: value for key, value in front.items() if value not in (None, "")} if isinstance(front, dict) else front
