"""The shelf is in the field's layout, whole, and part of the wheel."""

import json
import tomllib
from fnmatch import fnmatch
from pathlib import Path

import pytest

from architecture.source_tree import PACKAGE, REPOSITORY, SHELF_TYPES

SHELF = PACKAGE / "components"
COMPOSED = {"environments", "benchmarks"}
"""What has a configuration over servers, and no server of its own."""
COMPONENTS = sorted(
    folder
    for kind in SHELF_TYPES
    if kind not in COMPOSED
    for folder in (SHELF / kind).glob("*")
    if folder.is_dir() and folder.name != "__pycache__"
)
NAMES = [folder.relative_to(SHELF).as_posix() for folder in COMPONENTS]


@pytest.mark.parametrize("folder", COMPONENTS, ids=NAMES)
def test_a_component_has_the_files_of_the_layout(folder: Path):
    missing = [name for name in ("app.py", "README.md", "tests") if not (folder / name).exists()]
    assert missing == []


@pytest.mark.parametrize("folder", COMPONENTS, ids=NAMES)
def test_a_components_readme_opens_with_what_it_is(folder: Path):
    paragraphs = (folder / "README.md").read_text(encoding="utf-8").split("\n\n")
    assert paragraphs[0].startswith("# ")
    assert len(paragraphs[1].strip()) > 20


@pytest.mark.parametrize("file", sorted(SHELF.rglob("data/*.jsonl")), ids=lambda file: str(file.relative_to(SHELF)))
def test_every_line_of_shipped_data_is_a_json_object(file: Path):
    lines = file.read_text(encoding="utf-8").splitlines()
    assert lines
    assert all(isinstance(json.loads(line), dict) for line in lines)


def test_the_wheel_holds_the_package_with_its_shelf():
    settings = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))
    wheel = settings["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert wheel == {"packages": ["src/rollbook"]}


def test_no_ignore_rule_keeps_a_shipped_file_out_of_the_wheel():
    patterns = [
        line.strip("/")
        for line in (REPOSITORY / ".gitignore").read_text(encoding="utf-8").splitlines()
        if line and not line.startswith(("#", "/"))
    ]
    shipped = [path for path in SHELF.rglob("*") if path.suffix in {".yaml", ".jsonl", ".md", ".txt"}]
    kept_out = [
        str(path)
        for path in shipped
        for part in path.relative_to(REPOSITORY).parts
        if any(fnmatch(part, pattern) for pattern in patterns) and "__pycache__" not in path.parts
    ]
    assert shipped
    assert kept_out == []
