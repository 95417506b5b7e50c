"""The packages that a component's `pyproject.toml` asks for.

Rules:
* Places that `[tool.uv.sources]` gives take part, under the markers of both; so do the overrides of `[tool.uv]`.
* Packages that a build computes cannot be told from the file, and that is said.

Source: servers.md §2.3.
"""

import tomllib
from collections.abc import Iterator, Mapping
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
    asked_for = _texts(project.get("dependencies"))
    packages = tuple(placed for line in asked_for for placed in _placed(line, places, path.parent))
    return ProjectLines(packages, _texts(uv.get("override-dependencies")))


def _placed(line: str, sources: Mapping[str, object], folder: Path) -> Iterator[str]:
    """Yield `line` with the places that `[tool.uv.sources]` gives its package.

    Where a place counts under a marker of its own, the line stays beside it for wherever else.
    """
    one = asked(line, folder)
    given = sources.get(one.name)
    places = [place for place in (given if isinstance(given, list) else [given]) if isinstance(place, dict)]
    addressed = [(place, address) for place in places if (address := _address(place, folder))]
    if not addressed or any("marker" in place for place in places):
        yield line
    extras = f"[{','.join(sorted(one.extras))}]" if one.extras else ""
    marker = line.partition(" ;" if one.place else ";")[2].strip()
    for place, address in addressed:
        when = _both(marker, str(place.get("marker", "")))
        yield f"{one.name}{extras} @ {address}" + (f" ; {when}" if when else "")


def _address(place: Mapping[str, object], folder: Path) -> str:
    """Return the address that a source stands for; empty for one that has none, such as an index."""
    if "git" in place:
        revision = next((f"@{place[key]}" for key in _REVISIONS if key in place), "")
        below = f"#subdirectory={place['subdirectory']}" if "subdirectory" in place else ""
        return f"git+{place['git']}{revision}{below}"
    if "path" in place:
        return (folder / str(place["path"])).resolve().as_uri()
    return str(place.get("url", ""))


def _both(*markers: str) -> str:
    """Return the marker that holds where all of these do; an empty one always holds."""
    given = [marker for marker in markers if marker]
    return " and ".join(f"({marker})" for marker in given) if len(given) > 1 else "".join(given)


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
