"""The programs that make environments: uv where it is, else `venv` and pip.

Rules:
* A command names files and folders; requirements, addresses and secrets stand in the files.
* uv takes overrides as such. pip knows none: an override takes the line's place where a component asks for the package
  itself, and bounds it elsewhere.

Source: servers.md §2.3.
"""

import importlib.util
import re
import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, Protocol

import msgspec

from rollbook.errors import ConfigError

Command = tuple[str, ...]
_MODULE: Final = "uv"
_VERSION: Final = re.compile(r"(?P<short>\d+\.\d+)(\.\d+)?")


class Installer(Protocol):
    """Makes environments and fills them."""

    @property
    def name(self) -> str:
        """What messages call it."""
        ...

    def commands(
        self,
        python: str,
        venv: Path,
        inside: Path,
        requirements: Path,
        overrides: Path | None,
        *,
        built: Sequence[str] = (),
    ) -> tuple[Command, ...]:
        """Return the commands that make `venv` for `python` and install what the files name; `inside` is its Python.

        `built` are the packages that are built from local folders: what was built of them before is not taken again.
        """
        ...

    def interpreter(self, version: str) -> str:
        """Return what `commands` takes for the Python of the given version."""
        ...


class Uv(msgspec.Struct, frozen=True):
    """uv, called by `program`."""

    program: Command
    verbose: bool = False
    name: str = "uv"

    def commands(
        self,
        python: str,
        venv: Path,
        inside: Path,
        requirements: Path,
        overrides: Path | None,
        *,
        built: Sequence[str] = (),
    ) -> tuple[Command, ...]:
        """See `Installer`."""
        loud = ("--verbose",) if self.verbose else ()
        instead = ("--override", str(overrides)) if overrides else ()
        install = ("pip", "install", "--python", str(inside), "--requirement", str(requirements))
        return (
            (*self.program, "venv", *loud, "--python", python, str(venv)),
            (*self.program, *install, *instead, *_built_anew(built), *loud),
        )

    def interpreter(self, version: str) -> str:
        """Return the version: uv finds such a Python, or fetches it."""
        return version


def _built_anew(names: Sequence[str]) -> Iterator[str]:
    """Yield the options that have uv build packages anew: it keeps what it built until the project file changes."""
    if not all(names):
        yield "--refresh"
        return
    for name in names:
        yield from ("--refresh-package", name)


class VenvAndPip(msgspec.Struct, frozen=True):
    """What comes with Python."""

    verbose: bool = False
    name: str = "pip"

    def commands(
        self,
        python: str,
        venv: Path,
        inside: Path,
        requirements: Path,
        overrides: Path | None,
        *,
        built: Sequence[str] = (),  # noqa: ARG002  pip builds folders anew in any case
    ) -> tuple[Command, ...]:
        """See `Installer`."""
        loud = ("--verbose",) if self.verbose else ()
        bounds = ("--constraint", str(overrides)) if overrides else ()
        install = ("-m", "pip", "install", "--disable-pip-version-check", "--no-input", "--progress-bar", "off")
        return (
            (python, "-m", "venv", str(venv)),
            (str(inside), *install, "--requirement", str(requirements), *bounds, *loud),
        )

    def interpreter(self, version: str) -> str:
        """Return the program of a Python of the given version on the search path.

        Raises:
            ConfigError: there is none.

        """
        found = _VERSION.fullmatch(version)
        program = shutil.which(f"python{found['short'] if found else version}")
        if program is None:
            raise ConfigError(
                f"there is no Python {version} on the search path (python_version); install it, or install uv, "
                "which fetches it: pip install uv"
            )
        return program


def installer(*, verbose: bool = False) -> Installer:
    """Return uv where it can be called, else `venv` and pip."""
    program = shutil.which("uv")
    if program is not None:
        return Uv((program,), verbose)
    if importlib.util.find_spec(_MODULE) is not None:
        return Uv((sys.executable, "-m", _MODULE), verbose)
    return VenvAndPip(verbose)
