"""What the search roots hold, and how a short name becomes a configuration file.

Rules:
* A listing is read from the folders alone; no component is imported.
* The first root that holds a name wins; a selector that several roots answer says which one it takes.
* A name that is not found is answered with the path it implies, the close names and the roots searched.

Source: servers.md §10.1, §8.10.
"""

import logging
import re
from collections.abc import Iterator, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Final

import msgspec

from rollbook.config.names import AGENTS, ENVIRONMENT_SERVERS, MODELS, RESOURCES_SERVERS
from rollbook.config.placed_yaml import PlacedYaml, read_placed_yaml
from rollbook.config.roots import search_roots
from rollbook.config.tree import did_you_mean
from rollbook.errors import ConfigError, ConfigPathNotFoundError

_LOG = logging.getLogger(__name__)
_SELECTOR: Final = re.compile(r"[A-Za-z0-9_][\w.-]*(/[A-Za-z0-9_][\w.-]*)*")
_NO_FLAVOR: Final = re.compile(r"config|manifest|prompt.*")
_USAGE_EXIT_CODE: Final = 2


class Shelf(StrEnum):
    """A folder under a root that holds one kind of thing, one folder each."""

    RESOURCES_SERVER = RESOURCES_SERVERS
    AGENT = AGENTS
    MODEL = MODELS
    ENVIRONMENT_SERVER = ENVIRONMENT_SERVERS
    ENVIRONMENT = "environments"
    BENCHMARK = "benchmarks"

    @property
    def flag(self) -> str:
        """The command-line flag whose value names something on this shelf."""
        return _FLAGS[self]

    @property
    def composes(self) -> bool:
        """Whether its folders hold whole configurations instead of a server."""
        return self in {Shelf.ENVIRONMENT, Shelf.BENCHMARK}


_FLAGS: Final = {
    Shelf.RESOURCES_SERVER: "--resources-server",
    Shelf.AGENT: "--agent-type",
    Shelf.MODEL: "--model-type",
    Shelf.ENVIRONMENT_SERVER: "--config",
    Shelf.ENVIRONMENT: "--environment",
    Shelf.BENCHMARK: "--benchmark",
}


class CatalogEntry(msgspec.Struct, frozen=True):
    """One thing that can be named; `flavors` are its other configurations, written NAME/FLAVOR."""

    shelf: Shelf
    name: str
    path: Path
    flavors: tuple[str, ...]
    description: str
    manifest: PlacedYaml | None = None
    """What its manifest holds; None where it has none, or one that cannot be read."""


def resources_servers(roots: Sequence[Path] | None = None) -> tuple[CatalogEntry, ...]:
    """Return the resources servers that the roots hold, by name."""
    return shelf_entries(Shelf.RESOURCES_SERVER, roots)


def agents(roots: Sequence[Path] | None = None) -> tuple[CatalogEntry, ...]:
    """Return the agent types that the roots hold, by name."""
    return shelf_entries(Shelf.AGENT, roots)


def models(roots: Sequence[Path] | None = None) -> tuple[CatalogEntry, ...]:
    """Return the model types that the roots hold, by name."""
    return shelf_entries(Shelf.MODEL, roots)


def environment_servers(roots: Sequence[Path] | None = None) -> tuple[CatalogEntry, ...]:
    """Return the environment server types that the roots hold, by name."""
    return shelf_entries(Shelf.ENVIRONMENT_SERVER, roots)


def environments(roots: Sequence[Path] | None = None) -> tuple[CatalogEntry, ...]:
    """Return the environments that the roots hold, by name."""
    return shelf_entries(Shelf.ENVIRONMENT, roots)


def benchmarks(roots: Sequence[Path] | None = None) -> tuple[CatalogEntry, ...]:
    """Return the benchmarks that the roots hold, by name; a nested one is named `group/name`."""
    return shelf_entries(Shelf.BENCHMARK, roots)


def shelf_entries(shelf: Shelf, roots: Sequence[Path] | None = None) -> tuple[CatalogEntry, ...]:
    """Return what a shelf holds under all roots, by name; the first root that holds a name wins."""
    found: dict[str, Path] = {}
    for root in search_roots() if roots is None else roots:
        for folder in _folders(shelf, root / shelf):
            found.setdefault(folder.relative_to(root / shelf).as_posix(), folder)
    return tuple(_entry(shelf, name, found[name]) for name in sorted(found))


def selected_path(shelf: Shelf, selector: str, roots: Sequence[Path] | None = None) -> Path:
    """Return the configuration file that NAME or NAME/FLAVOR stands for.

    Raises:
        ConfigPathNotFoundError: no root holds it; names the path, close names and the roots (exit code 2).

    """
    searched = tuple(search_roots() if roots is None else roots)
    candidates = _implied(shelf, selector) if _SELECTOR.fullmatch(selector) else []
    for implied in candidates:
        found = [root / implied for root in searched if (root / implied).is_file()]
        if len(found) > 1:
            _LOG.warning(
                "%s %s: %s is taken, %s is not", shelf.flag, selector, found[0], ", ".join(map(str, found[1:]))
            )
        if found:
            return found[0]
    raise _not_found(shelf, selector, candidates, searched)


def named_folder(shelf: Shelf, name: str, roots: Sequence[Path] | None = None) -> Path:
    """Return the folder of a name on a shelf, under the first root that has it; it need hold no configuration.

    Raises:
        ConfigPathNotFoundError: no root holds it; names the path, close names and the roots (exit code 2).

    """
    searched = tuple(search_roots() if roots is None else roots)
    if _SELECTOR.fullmatch(name):
        for root in searched:
            if (root / shelf / name).is_dir():
                return root / shelf / name
    raise _not_found(shelf, name, [Path(shelf) / name], searched)


def _folders(shelf: Shelf, folder: Path) -> Iterator[Path]:
    for child in sorted(folder.iterdir()) if folder.is_dir() else ():
        if not child.is_dir() or child.name.startswith((".", "__")):
            continue
        if shelf.composes:
            yield from _composed_folders(child)
        elif (child / "app.py").is_file() or any((child / "configs").glob("*.yaml")):
            yield child


def _composed_folders(folder: Path) -> Iterator[Path]:
    """Yield `folder` if it holds a configuration, and those below it that do; what a group has beside them is none."""
    nested = [child for child in sorted(folder.iterdir()) if (child / "config.yaml").is_file()]
    if (folder / "config.yaml").is_file() or (not nested and _flavors(Shelf.ENVIRONMENT, folder)):
        yield folder
    yield from nested


def _entry(shelf: Shelf, name: str, path: Path) -> CatalogEntry:
    manifest = _manifest(path / "manifest.yaml")
    return CatalogEntry(shelf, name, path, _flavors(shelf, path), _description(path, manifest), manifest)


def _flavors(shelf: Shelf, path: Path) -> tuple[str, ...]:
    """Return the configurations in a folder beside the one of its own name."""
    files = path.glob("*.yaml") if shelf.composes else (path / "configs").glob("*.yaml")
    stems = sorted(file.stem for file in files)
    return tuple(s for s in stems if not (_NO_FLAVOR.fullmatch(s) if shelf.composes else s == path.name))


def _description(folder: Path, manifest: PlacedYaml | None) -> str:
    """Return the manifest's description, else the first paragraph of the README, else nothing."""
    told = "" if manifest is None else manifest.tree.get("description")
    text = told if isinstance(told, str) and told else _first_paragraph(folder / "README.md")
    return " ".join(text.split())


def _manifest(file: Path) -> PlacedYaml | None:
    try:
        return read_placed_yaml(file, "a manifest")
    except (OSError, ConfigError):
        return None


def _first_paragraph(file: Path) -> str:
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""
    blocks = re.split(r"\n\s*\n", re.sub(r"\A---\n.*?\n---\n", "", text, flags=re.DOTALL))
    for block in blocks:
        lines = [line for line in block.strip().splitlines() if not line.startswith("#")]
        if lines and not lines[0].startswith(("<", "[!", "![", "```", "|", "---")):
            return "\n".join(lines)
    return ""


def _implied(shelf: Shelf, selector: str) -> list[Path]:
    """Return the paths that a selector may stand for, the preferred one first."""
    base, parts = Path(shelf), selector.split("/")
    if shelf.composes:
        nested = base.joinpath(*parts, "config.yaml")
        return [nested] if len(parts) == 1 else [nested, base.joinpath(*parts[:-1], f"{parts[-1]}.yaml")]
    name, flavor = parts[0], parts[-1]
    return [base / name / "configs" / f"{flavor}.yaml"] if len(parts) <= 2 else []  # noqa: PLR2004  NAME/FLAVOR


def selectors_of(entry: CatalogEntry) -> Iterator[str]:
    """Yield what selects a configuration of `entry`: its name, where it has one of its own, and its flavors."""
    own = entry.path / "config.yaml" if entry.shelf.composes else entry.path / "configs" / f"{entry.path.name}.yaml"
    if own.is_file():
        yield entry.name
    yield from (f"{entry.name}/{flavor}" for flavor in entry.flavors)


def _not_found(
    shelf: Shelf, selector: str, candidates: Sequence[Path], roots: Sequence[Path]
) -> ConfigPathNotFoundError:
    entries = shelf_entries(shelf, roots)
    known = [name for entry in entries for name in selectors_of(entry)]
    own = next((entry for entry in entries if entry.name == selector), None)
    flavored = list(selectors_of(own)) if own is not None else []
    implied = f"there is no {' or '.join(map(str, candidates))}" if candidates else "a name is NAME or NAME/FLAVOR"
    hint = " For a file use --config." if selector.endswith((".yaml", ".yml")) else ""
    searched = ", ".join(str(root) for root in roots)
    close = f" It has {' and '.join(flavored)}." if flavored else did_you_mean(selector, known)
    error = ConfigPathNotFoundError(f"{shelf.flag} {selector}: {implied} (searched in: {searched}).{close}{hint}")
    error.exit_code = _USAGE_EXIT_CODE
    return error
