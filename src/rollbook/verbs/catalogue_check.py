"""Whether others find an environment, and can tell what it is: its name, its README, its tests.

Rules:
* A name that two folders have is told: who searches both roots gets the first.

Source: servers.md §10.2.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from rollbook.config.catalog import Shelf, shelf_entries
from rollbook.config.manifest import EnvironmentManifest, read_manifest
from rollbook.config.roots import search_roots
from rollbook.errors import ConfigError
from rollbook.verbs.validation import Check, Finding

_NAME: Final = "catalogue"


def catalogue_checked(path: Path, name: str) -> Check:
    """Check the entry of the environment whose manifest is at `path`."""
    try:
        manifest = read_manifest(path)
    except (FileNotFoundError, ConfigError):
        return Check(_NAME, unchecked="the manifest has to be mended first")
    found = tuple(_findings(path, manifest, name))
    return Check(_NAME, found, f"{path.parent.parent.name}/{name}, its README and its tests")


def _findings(path: Path, manifest: EnvironmentManifest, name: str) -> Iterator[Finding]:
    folder = path.parent
    shelf = Shelf.BENCHMARK if manifest.kind == "benchmark" else Shelf.ENVIRONMENT
    if name not in {entry.name for entry in shelf_entries(shelf)}:
        yield Finding(str(folder), f"gym list {shelf} does not show it; it needs a config.yaml in {shelf}/{name}")
    others = [root / shelf / name for root in search_roots() if (root / shelf / name).is_dir()]
    if len(others) > 1:
        yield Finding(str(folder), f"{others[1]} has the same name, and one hides the other; rename one")
    if manifest.lifecycle == "deprecated":
        yield Finding(str(path), "lifecycle is deprecated; write active, or publish its successor")
    judges = [root / Shelf.RESOURCES_SERVER / (manifest.resources_server or "") for root in search_roots()]
    judge = next((one for one in judges if manifest.resources_server and one.is_dir()), None)
    if not any(_has_headings(place / "README.md") for place in (folder, judge) if place is not None):
        yield Finding(
            str(folder / "README.md"), "no README with headings says what it is; write one, see docs/making.md"
        )
    if judge is not None and not any((judge / "tests").glob("test_*.py")):
        yield Finding(str(judge / "tests"), "the verifier has no tests; write tests/test_app.py")


def _has_headings(readme: Path) -> bool:
    if not readme.is_file():
        return False
    lines = readme.read_text(encoding="utf-8", errors="replace").splitlines()
    return any(line.startswith("# ") for line in lines) and any(line.startswith("## ") for line in lines)
