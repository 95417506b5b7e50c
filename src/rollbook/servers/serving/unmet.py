"""Which of a component's packages this interpreter does not have.

Rules:
* A package is there when its version fits; of one that is named by an address, any version does.
* An override takes the place of what a component asks for itself.
* What cannot be told from a line is taken to be there: importing it will show.

Source: servers.md §2.3; PEP 440, PEP 508.
"""

from collections.abc import Iterable, Iterator, Mapping
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Final

import msgspec
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import InvalidWheelFilename, parse_wheel_filename

from rollbook.servers.serving.own_distributions import OWN
from rollbook.servers.serving.project_file import project_name
from rollbook.servers.serving.requirement_lines import asked, canonical
from rollbook.servers.serving.requirements import Needs

_NEVER: Final = {"extra": ""}


class Unmet(msgspec.Struct, frozen=True):
    """A package that is not there: the line that asks for it, and the version that is installed instead, if any."""

    line: str
    found: str | None = None

    def __str__(self) -> str:
        return f"{self.line} ({self.found} is installed)" if self.found else self.line


def unmet(needs: Needs) -> tuple[Unmet, ...]:
    """Return the packages of `needs` that this interpreter does not have."""
    instead = {one.name: one for one in (_parsed(line) for line in needs.overrides) if one is not None}
    overrides = {canonical(name): one for name, one in instead.items()}
    own = (f"{OWN}[{','.join(sorted(needs.extras))}]",) if needs.extras else ()
    return tuple(_missing((*needs.packages, *own), overrides, needs.folder))


def _missing(lines: Iterable[str], overrides: Mapping[str, Requirement], folder: Path) -> Iterator[Unmet]:
    for line in lines:
        wanted = _parsed(line) or _by_place(line, folder)
        if wanted is None:
            continue
        instead = overrides.get(canonical(wanted.name), wanted)
        lacking = _lacking(instead)
        if lacking is not None:
            yield Unmet(line if instead is wanted else str(instead), lacking or None)


def _lacking(wanted: Requirement) -> str | None:
    """Return None when `wanted` is there, else the version that does not fit; empty when there is none."""
    if wanted.marker is not None and not wanted.marker.evaluate(_NEVER):
        return None
    found = _version(wanted.name)
    if found is None:
        return ""
    if not wanted.specifier.contains(found, prereleases=True):
        return found
    parts = (part for extra in wanted.extras for part in _of_extra(wanted.name, extra))
    return next(("" for part in parts if _lacking(part) is not None), None)


def _of_extra(name: str, extra: str) -> Iterator[Requirement]:
    """Yield what the installed distribution `name` asks for under `extra`, and not without."""
    for line in requires(name) or ():
        part = _parsed(line)
        if part is None or part.marker is None or part.marker.evaluate(_NEVER):
            continue
        if part.marker.evaluate({"extra": extra}) and canonical(part.name) != canonical(name):
            part.marker = None
            yield part


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _parsed(line: str) -> Requirement | None:
    try:
        return Requirement(line.partition(" --")[0])
    except InvalidRequirement:
        return None


def _by_place(line: str, folder: Path) -> Requirement | None:
    """Return the package that a line names by its path or address alone, as far as that tells its name."""
    place = asked(line, folder).place
    if not place:
        return None
    if "://" not in place:
        name = project_name(Path(place) / "pyproject.toml")
        return Requirement(name) if name else None
    last = place.partition("#")[0].rsplit("/", 1)[-1]
    if last.endswith(".whl"):
        return _of_wheel(last)
    return _parsed(last.partition("@")[0].removesuffix(".git"))


def _of_wheel(file_name: str) -> Requirement | None:
    try:
        name, found, _, _ = parse_wheel_filename(file_name)
    except InvalidWheelFilename:
        return None
    return Requirement(f"{name}=={found}")
