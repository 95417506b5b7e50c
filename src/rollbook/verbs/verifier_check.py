"""Whether the verifier of an environment gives the rewards that its fixture says.

Rules:
* A name is an environment's, a benchmark's or a resources server's; the manifest of the first two says which resources
  server judges, and between which ends rewards lie.
* The module that serves is loaded as it is to be served; what it, or `verifier_fixture.py` beside it, exports as
  `VERIFIER_FIXTURE` is exercised.

Source: servers.md §8.12, §10.2.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Final

import msgspec
from msgspec.structs import replace

from rollbook.config.catalog import Shelf, named_folder, shelf_entries
from rollbook.config.manifest import MANIFEST_FILE, Determinism, EnvironmentManifest, Kind, read_manifest
from rollbook.config.names import RESOURCES_SERVERS
from rollbook.config.roots import search_roots
from rollbook.config.tree import did_you_mean
from rollbook.config.types import ServerInstanceConfig
from rollbook.errors import ConfigError, ConfigPathNotFoundError, VerifierFixtureError
from rollbook.records.json_values import JsonObject
from rollbook.servers.kinds.verifier_exercise import exercise_verifier_fixture
from rollbook.servers.kinds.verifier_fixture import VerifierFixture
from rollbook.servers.serving.loading import build_component, load_module

_KINDS: Final = {"environment": Shelf.ENVIRONMENT, "benchmark": Shelf.BENCHMARK}
_EXPORTED: Final = "VERIFIER_FIXTURE"
_ENTRY_POINT: Final = "app.py"
_BESIDE: Final = "verifier_fixture.py"


class Verifier(msgspec.Struct, frozen=True):
    """A verifier to check: the folder of its resources server, and what its manifest says of rewards.

    Where it has no manifest (`bare`), its fixture says it.
    """

    name: str
    folder: Path
    low: float = 0.0
    high: float = 1.0
    higher_is_better: bool = True
    determinism: Determinism = "unknown"
    bare: bool = False


class VerifierCheck(msgspec.Struct, frozen=True):
    """What came of a check: the cases that were asked, and what is wrong, if anything is."""

    verifier: Verifier
    cases: tuple[JsonObject, ...] = ()
    problem: str = ""

    def as_json(self) -> JsonObject:
        """Return it as a report holds it."""
        server = f"{RESOURCES_SERVERS}/{self.verifier.folder.name}"
        return {
            "name": self.verifier.name,
            "resources_server": server,
            "whole": not self.problem,
            "cases": list(self.cases),
            "problem": self.problem or None,
        }


def verifier_named(name: str, kind: Kind | None = None) -> Verifier:
    """Return the verifier that `name` stands for; `kind` says on which shelf it lies, where several have it.

    Raises:
        ConfigPathNotFoundError: no root holds the name.
        ConfigError: its manifest cannot be read, or names no resources server.

    """
    shelves = [_KINDS[kind]] if kind else [*_KINDS.values()]
    for shelf in shelves:
        folder = next((root / shelf / name for root in search_roots() if (root / shelf / name).is_dir()), None)
        if folder is not None:
            return _of_manifest(name, folder)
    try:
        return Verifier(name, named_folder(_KINDS[kind] if kind else Shelf.RESOURCES_SERVER, name), bare=True)
    except ConfigPathNotFoundError as error:
        raise _not_there(name, shelves if kind else [*shelves, Shelf.RESOURCES_SERVER], error) from error


def _not_there(name: str, shelves: Sequence[Shelf], error: ConfigPathNotFoundError) -> ConfigPathNotFoundError:
    """Return the error for a name alone: no flag was typed that a message could name."""
    places = " or ".join(f"{shelf}/{name}" for shelf in shelves)
    known = sorted({entry.name for shelf in shelves for entry in shelf_entries(shelf)})
    searched = ", ".join(map(str, search_roots()))
    told = ConfigPathNotFoundError(
        f"{name}: there is no {places} (searched in: {searched}).{did_you_mean(name, known)}"
    )
    told.exit_code = error.exit_code
    return told


def _of_manifest(name: str, folder: Path) -> Verifier:
    path = folder / MANIFEST_FILE
    try:
        told = read_manifest(path)
    except FileNotFoundError as error:
        raise ConfigError(f"{folder} has no {MANIFEST_FILE}, which says which resources server judges") from error
    return verifier_of(told, path, name)


def verifier_of(manifest: EnvironmentManifest, path: Path, name: str) -> Verifier:
    """Return the verifier that a manifest names; `path` is its file, `name` what the verifier is told as.

    Raises:
        ConfigError: it names none, or one that no root holds.

    """
    if manifest.resources_server is None:
        raise ConfigError(f"{path} names no resources_server; nothing of {name} can be checked")
    low, high = manifest.reward.range
    better, determinism = manifest.reward.higher_is_better, manifest.determinism
    return Verifier(
        name, named_folder(Shelf.RESOURCES_SERVER, manifest.resources_server), low, high, better, determinism
    )


def judging_module(folder: Path) -> ModuleType:
    """Return the module that says how the resources server in `folder` judges: its fixture and its gold answers.

    It is `verifier_fixture.py` beside the entry point where there is one, else the module that serves, which is loaded
    as it is to be served.

    Raises:
        MissingPackageError, ServingError: it cannot be loaded.

    """
    entry = _BESIDE if (folder / _BESIDE).is_file() else _ENTRY_POINT
    instance = ServerInstanceConfig(folder.name, RESOURCES_SERVERS, folder.name, {"entrypoint": _ENTRY_POINT})
    names = {file: f"{RESOURCES_SERVERS}.{folder.name}.{Path(file).stem}" for file in (_ENTRY_POINT, _BESIDE)}
    path = (folder / entry).resolve()
    build_component(instance, lambda served: load_module(path, names[entry]) if entry == _BESIDE else served)
    return sys.modules[names[entry]]


def exported_fixture(folder: Path) -> VerifierFixture | None:
    """Return the fixture that the resources server in `folder` exports; None where it has none.

    Raises:
        MissingPackageError, ServingError: its module cannot be loaded.

    """
    fixture = getattr(judging_module(folder), _EXPORTED, None)
    return fixture if isinstance(fixture, VerifierFixture) else None


async def verifier_check(verifier: Verifier, *, update_expected: bool = False) -> VerifierCheck:
    """Ask the verifier every case of its fixture; with `update_expected` its file is written anew.

    Raises:
        MissingPackageError, ServingError: its module cannot be loaded.

    """
    fixture = exported_fixture(verifier.folder)
    if fixture is None:
        return VerifierCheck(verifier, problem=f"{verifier.folder / _ENTRY_POINT} exports no {_EXPORTED}")
    if verifier.bare:
        low, high = fixture.reward_range
        verifier = replace(verifier, low=low, high=high, higher_is_better=fixture.higher_is_better)
    try:
        results = await exercise_verifier_fixture(
            fixture,
            reward_range=(verifier.low, verifier.high),
            higher_is_better=verifier.higher_is_better,
            determinism=verifier.determinism,
            update_expected=update_expected,
        )
    except VerifierFixtureError as error:
        return VerifierCheck(verifier, problem=str(error))
    cases: list[JsonObject] = [
        {
            "name": one.name,
            "kind": str(one.kind),
            "rewards": list(one.observed_rewards),
            "error": one.observed_error,
        }
        for one in results
    ]
    return VerifierCheck(verifier, tuple(cases))
