"""Where files are looked for: the search roots, and how a relative path becomes a file.

Rules:
* A path to read is tried under each root in order, and the first that is there wins; an absolute path is itself.
* Roots are: the extra ones of the environment, the current directory, the components that come with the package.
* A path to read is also tried where Python imports components from, so that code finds the files beside it however
  it was started.
* A folder that is named to be searched has to be there and hold something that is looked for; a variable's root that is
  not there is told once.
* A message about a missing file lists the roots that were searched and the names that come close.

Source: servers.md §1.1.
"""

import logging
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Final

from rollbook.config.names import EXTRA_ROOTS_ENV_VAR_NAMES, SERVER_TYPES
from rollbook.errors import ConfigPathNotFoundError

ROOT_DIR: Final = Path(__file__).resolve().parent.parent
"""The package's own folder."""
PARENT_DIR: Final = ROOT_DIR / "components"
"""The folder that holds `resources_servers/`, `responses_api_agents/` and the other shelves of the package."""
WORKING_DIR: Final = Path.cwd()
CACHE_DIR: Final = WORKING_DIR / "cache"
RESULTS_DIR: Final = WORKING_DIR / "results"
_LOG: Final = logging.getLogger(__name__)
_SHELVES: Final = (*SERVER_TYPES, "environments", "benchmarks")
_LOOKED_FOR: Final = ("*.yaml", "*.yml", "*.jsonl", "*.py", "*/__init__.py", "*/*.jsonl")
_OF_A_COMPONENT: Final = ("app.py", "configs", "config.yaml")
_USAGE_EXIT_CODE: Final = 2
_told_absent: Final[set[str]] = set()


def search_roots(extra: Sequence[str] = ()) -> tuple[Path, ...]:
    """Return the folders searched for files: `extra`, those of the environment, the current one, the package's."""
    named = [*extra, *_roots_of_environment()]
    return tuple(dict.fromkeys([Path(root).absolute() for root in named] + [Path.cwd(), PARENT_DIR]))


def add_search_dirs(dirs: Sequence[str]) -> None:
    """Put `dirs` before the other roots, for this process and those it starts.

    Raises:
        ConfigPathNotFoundError: a folder that does not exist, or holds nothing that is looked for (exit code 2).

    """
    _tell_absent_roots()
    absolute = [str(Path(folder).absolute()) for folder in dirs]
    for folder in absolute:
        _refuse_what_is_no_root(Path(folder))
    variable = EXTRA_ROOTS_ENV_VAR_NAMES[0]
    present = [root for root in os.environ.get(variable, "").split(os.pathsep) if root]
    if absolute:
        os.environ[variable] = os.pathsep.join(dict.fromkeys(absolute + present))


def put_roots_on_import_path() -> None:
    """Make `resources_servers.<name>.app` and its like importable from every root, the first root first."""
    roots = [str(root) for root in search_roots()]
    if [entry for entry in sys.path if entry in roots] != roots:
        sys.path[:] = roots + [entry for entry in sys.path if entry not in roots]


def resolve_read_path(path: str | Path, accept: Callable[[Path], bool] | None = None) -> Path:
    """Return the first existing candidate for `path`, else the one under the first root, which does not exist.

    `accept` can reject a candidate, for example one that is no file.
    """
    wanted = Path(path).expanduser()
    candidates = [root / wanted for root in _read_roots()]
    fits = Path.exists if accept is None else accept
    return next((candidate for candidate in candidates if fits(candidate)), candidates[0])


def require_read_path(path: str | Path, what: str, accept: Callable[[Path], bool] = Path.is_file) -> Path:
    """Return the file that `path` names; `what` says in a message what it was to be.

    Raises:
        ConfigPathNotFoundError: no root holds it; names the roots searched and close matches.

    """
    found = resolve_read_path(path, accept)
    if accept(found):
        return found
    close = close_paths(path)
    hint = f" Did you mean {' or '.join(close)}?" if close else ""
    searched = ", ".join(str(root) for root in _read_roots())
    where = f"searched in: {searched}" if not Path(path).is_absolute() else "the path is absolute"
    raise ConfigPathNotFoundError(f"no {what} at {path} ({where}).{hint}")


def close_paths(path: str | Path, limit: int = 3) -> tuple[str, ...]:
    """Return existing paths that look like `path`, written the way `path` is."""
    wanted = Path(path)
    roots = [Path(wanted.anchor)] if wanted.is_absolute() else list(search_roots())
    parts = wanted.relative_to(wanted.anchor).parts
    found = (str(Path(wanted.anchor) / near) for root in roots for near in _near(root, parts))
    return tuple(dict.fromkeys(found))[:limit]


def _near(root: Path, parts: Sequence[str]) -> Iterator[Path]:
    for depth, part in enumerate(parts):
        here = root.joinpath(*parts[:depth])
        if (here / part).exists():
            continue
        names = sorted(entry.name for entry in here.iterdir()) if here.is_dir() else []
        for name in get_close_matches(part, names):
            yield _completed(root, parts, depth, name)
        return


def _completed(root: Path, parts: Sequence[str], depth: int, name: str) -> Path:
    """Return the longest existing path that has `name` at `depth`; a repeated wrong name is mended everywhere."""
    wrong, right = Path(parts[depth]).stem, Path(name).stem
    rest = [name if part == parts[depth] else part.replace(wrong, right) for part in parts[depth + 1 :]]
    mended = Path(*parts[:depth], name, *rest)
    return mended if (root / mended).exists() else Path(*parts[:depth], name)


def _read_roots() -> tuple[Path, ...]:
    """Return the search roots, and before our own components those that come before them on the import path."""
    *first, own = search_roots()
    imported = [Path(entry).absolute() for entry in sys.path if entry]
    shelves = [root for root in imported if (root / "resources_servers").is_dir()]
    return tuple(dict.fromkeys([*first, *shelves, own]))


def _refuse_what_is_no_root(folder: Path) -> None:
    if not folder.is_dir():
        raise _no_root(f"no folder {folder} to search; check --search-dir")
    above = _root_above(folder)
    if _holds_a_shelf(folder) or (above is None and any(any(folder.glob(kind)) for kind in _LOOKED_FOR)):
        return
    shelves = ", ".join(f"{shelf}/" for shelf in _SHELVES)
    hint = f"did you mean {above}?" if above else "name the folder that holds them, or one with files that you name"
    raise _no_root(f"--search-dir {folder} holds none of {shelves}; {hint}")


def _holds_a_shelf(folder: Path) -> bool:
    return any((folder / shelf).is_dir() for shelf in _SHELVES)


def _root_above(folder: Path) -> Path | None:
    """Return the root that a shelf or a component's folder lies in; None where `folder` is neither."""
    if folder.name in _SHELVES:
        return folder.parent
    above = next((parent for parent in list(folder.parents)[:2] if parent.name in _SHELVES), None)
    return above.parent if above and any((folder / sign).exists() for sign in _OF_A_COMPONENT) else None


def _no_root(words: str) -> ConfigPathNotFoundError:
    error = ConfigPathNotFoundError(words)
    error.exit_code = _USAGE_EXIT_CODE
    return error


def _tell_absent_roots() -> None:
    """Warn of the roots that a variable names and that are not there, once in a process."""
    for variable in EXTRA_ROOTS_ENV_VAR_NAMES:
        for root in filter(None, os.environ.get(variable, "").split(os.pathsep)):
            if root not in _told_absent and not Path(root).is_dir():
                _told_absent.add(root)
                _LOG.warning("%s names %s, which is no folder; it is not searched. Mend the variable.", variable, root)


def _roots_of_environment() -> list[str]:
    texts = [os.environ.get(variable, "") for variable in EXTRA_ROOTS_ENV_VAR_NAMES]
    return [root for text in texts for root in text.split(os.pathsep) if root]
