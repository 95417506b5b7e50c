"""What a component needs beyond ours: its `requirements.txt` or `pyproject.toml`, and its `overrides.txt`.

Rules:
* A folder has one of the two files, or neither when it needs nothing else; both are an error.
* A requirement on `nemo-gym` or on ours, however it is written, is answered by what is installed here; it is no package
  of the component's.
* What a component that asks for `nemo-gym` leaves to it to bring is among its packages.
* Nothing is installed and no component is imported: files are read.

Source: servers.md §2.3.
"""

import re
import shlex
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import msgspec

from rollbook.errors import ConfigError, MissingPackageError
from rollbook.servers.serving.brought_along import brought_along
from rollbook.servers.serving.own_distributions import NAMES_PACKAGE, how_to_install_names
from rollbook.servers.serving.project_file import project_lines
from rollbook.servers.serving.requirement_lines import (
    Asked,
    asked,
    canonical,
    climbs,
    logical_lines,
    requirement_lines,
    without_credentials,
)

_OWN: Final = "rollbook"
_FIELD: Final = frozenset({"nemo-gym", "rollbook-nemo-gym"})
_FOR_TESTS: Final = frozenset({"dev", "test"})
_UPWARDS: Final = re.compile(r"^(?:-e|--editable)[ =]+(?:[\w.-]+\s*(?:\[[^\]]*\])?\s*@\s*)?(?P<place>[^\[\s]+)")


class Needs(msgspec.Struct, frozen=True):
    """What the component in `folder` asks for.

    `packages` and `overrides` are lines as installers read them, local paths absolute; `options` are those of its
    requirements file. `extras` are the extras of ours that it names; `field_names` says that it asks for `nemo_gym`,
    `for_tests` that it asks for what runs tests. `unknown` says why its packages cannot be told, if they cannot.
    """

    folder: Path
    packages: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    overrides: tuple[str, ...] = ()
    extras: frozenset[str] = frozenset()
    field_names: bool = False
    for_tests: bool = False
    unknown: str = ""

    @property
    def component(self) -> str:
        """The component as messages name it: `<type>/<implementation>`."""
        return component_name(self.folder)


def component_name(folder: Path) -> str:
    """Return the component in `folder` as messages name it: `<type>/<implementation>`."""
    return f"{folder.parent.name}/{folder.name}"


def needs_of(folder: Path) -> Needs:
    """Return what the component in `folder` asks for.

    Raises:
        ConfigError: it has both files, or one that cannot be read.

    """
    listed, project = folder / "requirements.txt", folder / "pyproject.toml"
    if listed.is_file() and project.is_file():
        raise ConfigError(f"{component_name(folder)} has {listed} and {project}; keep one of them")
    overrides = tuple(logical_lines(folder / "overrides.txt"))
    if not project.is_file():
        return _with_brought(_needs(folder, tuple(logical_lines(listed)), overrides))
    told = project_lines(project)
    needs = _with_brought(_needs(folder, told.packages, (*told.overrides, *overrides)))
    return msgspec.structs.replace(needs, unknown=told.unknown)


def _with_brought(needs: Needs) -> Needs:
    """Return `needs` with what the component imports and leaves to `nemo-gym` to bring."""
    if not needs.field_names:
        return needs
    listed = {asked(line, needs.folder).name for line in needs.packages}
    brought = tuple(line for line in brought_along(needs.folder) if asked(line, needs.folder).name not in listed)
    return msgspec.structs.replace(needs, packages=(*needs.packages, *brought)) if brought else needs


def needs_listed(folder: Path, lines: Iterable[str]) -> Needs:
    """Return what `lines` of a requirements file in `folder` ask for."""
    return _needs(folder, tuple(lines), ())


def _needs(folder: Path, lines: Iterable[str], overrides: tuple[str, ...]) -> Needs:
    options = [line for line in lines if line.startswith("-") and not line.startswith(("-e", "--editable"))]
    wanted = [(line, asked(line, folder)) for line in lines if line not in options]
    of_field = [one for line, one in wanted if _is_of_field(line, one)]
    of_ours = [one for _, one in wanted if one.name == _OWN]
    return Needs(
        folder,
        tuple(one.text for _, one in wanted if one not in of_field and one not in of_ours),
        tuple(options),
        overrides,
        frozenset().union(*(one.extras for one in of_ours)) - _FOR_TESTS,
        bool(of_field),
        any(one.extras & _FOR_TESTS for one in (*of_field, *of_ours)),
    )


def _is_of_field(line: str, one: Asked) -> bool:
    """Whether a line asks for `nemo-gym`: by name, or by the path of the repository that a component lies in."""
    upwards = _UPWARDS.match(line)
    return one.name in _FIELD or (not one.name and upwards is not None and climbs(upwards["place"]))


def missing_package(package: str, folder: Path, python: Path | None = None) -> MissingPackageError:
    """Return the error for a component in `folder` that imports `package`, which is not installed.

    `python` is the interpreter of the environment that was made for the component, where it runs in one.
    """
    listing = folder / ("pyproject.toml" if (folder / "pyproject.toml").is_file() else "requirements.txt")
    lacks = f"{component_name(folder)} needs the package {package!r}, which is not installed"
    if python is not None:
        line = "nemo-gym" if package == NAMES_PACKAGE else package
        return MissingPackageError(f"{lacks} in its environment ({python}); add {line} to {listing} and start again")
    if package == NAMES_PACKAGE:
        return missing_names(component_name(folder))
    lines = _packages_listed(folder)
    listed = canonical(package) in {asked(line, folder).name for line in lines}
    install = without_credentials(" ".join(shlex.quote(line) for line in lines)) or package
    rest = f" (and {package} itself, which it does not list, where none of these brings it)" if lines else ""
    isolate = f"; or add it to {listing}, and --isolate makes an environment with it"
    return MissingPackageError(f"{lacks}; run: pip install {install}" + ("" if listed else rest + isolate))


def missing_names(component: str) -> MissingPackageError:
    """Return the error for a component that is written for NeMo Gym's names, which are not installed."""
    return MissingPackageError(
        f"{component} is written for the import names of NeMo Gym ({NAMES_PACKAGE}), which are not installed; "
        f"run: {how_to_install_names()}"
    )


def _packages_listed(folder: Path) -> tuple[str, ...]:
    """Return the packages that a component lists, as they are written; none where its files cannot be read."""
    try:
        needs = needs_of(folder)
    except ConfigError:
        return ()
    own = (f"{_OWN}[{','.join(sorted(needs.extras))}]",) if needs.extras else ()
    return (*needs.packages, *own) or requirement_lines(folder / "requirements.txt")
