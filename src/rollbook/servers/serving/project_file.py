"""The packages that a component's `pyproject.toml` asks for.

Rules:
* Places that `[tool.uv.sources]` gives take part; so do the overrides of `[tool.uv]`.
* Packages that a build computes cannot be told from the file, and that is said.

Source: servers.md §2.3.
"""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from rollbook.errors import ConfigError
from rollbook.servers.serving.requirement_lines import asked, canonical

_REVISIONS: Final = ("rev", "tag", "branch")


class ProjectLines(msgspec.Struct, frozen=True):
    """Packages and overrides as lines of a requirements file; `unknown` says why packages cannot be told."""

    packages: tuple[str, ...] = ()
    overrides: tuple[str, ...] = ()
    unknown: str = ""


def project_lines(path: Path) -> ProjectLines:
    """Return what a `pyproject.toml` asks for.

    Raises:
        ConfigError: it is no TOML.

    """
    try:
        told = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} cannot be read: {error}") from error
    project, uv = _table(told, "project"), _table(told, "tool", "uv")
    if "dependencies" in _texts(project.get("dynamic")):
        return ProjectLines(unknown=f"{path} leaves its packages to its build; list them in a requirements.txt instead")
    places = {canonical(name): place for name, place in _table(uv, "sources").items()}
    packages = tuple(_placed(line, places, path.parent) for line in _texts(project.get("dependencies")))
    return ProjectLines(packages, _texts(uv.get("override-dependencies")))


def _placed(line: str, places: Mapping[str, object], folder: Path) -> str:
    """Return `line` with the place that `[tool.uv.sources]` gives its package."""
    one = asked(line, folder)
    place = places.get(one.name)
    if not isinstance(place, dict):
        return line
    extras = f"[{','.join(sorted(one.extras))}]" if one.extras else ""
    revision = next((f"@{place[key]}" for key in _REVISIONS if key in place), "")
    if "git" in place:
        return f"{one.name}{extras} @ git+{place['git']}{revision}"
    if "path" in place:
        return f"{one.name}{extras} @ {(folder / str(place['path'])).resolve().as_uri()}"
    return f"{one.name}{extras} @ {place['url']}" if "url" in place else line


def _table(told: Mapping[str, object], *keys: str) -> dict[str, object]:
    for key in keys:
        found = told.get(key)
        told = found if isinstance(found, dict) else {}
    return dict(told)


def _texts(value: object) -> tuple[str, ...]:
    return tuple(str(one) for one in value) if isinstance(value, list) else ()


def project_name(path: Path) -> str | None:
    """Return the name of the project that a `pyproject.toml` describes; None when it tells none."""
    try:
        told = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError):
        return None
    name = _table(told, "project").get("name")
    return name if isinstance(name, str) else None
