"""What the repository's files may not hold."""

import re
import string
from collections import Counter
from pathlib import Path

import pytest

from architecture.source_tree import REPOSITORY

FOLDERS = ("src", "tests", "docs", "bench", "compat", ".ci")
TOP_FILES = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "Makefile", "pyproject.toml", "requirements.lock")
TEXT = {".py", ".pyi", ".md", ".yaml", ".yml", ".toml", ".txt", ".lock", ".jsonl", ".json", "", ".cfg", ".sh"}
ROOTS_OF_MACHINES = ("work", "root", "home", "Users", "mnt", "srv", "workspace")
MACHINE_PLACES = re.compile(rf"(?<![\w.}})\]-])/(?:{'|'.join(ROOTS_OF_MACHINES)})/|[A-Z]:\\+Users\b")
REGISTRIES = re.compile("|".join(("pypi" + r"\.org", "pythonhosted" + r"\.org", "arti" + "factory", "index" + "-url")))


def _files() -> list[Path]:
    inside = [path for folder in FOLDERS for path in (REPOSITORY / folder).rglob("*")]
    tops = [REPOSITORY / name for name in TOP_FILES]
    return [
        path
        for path in [*inside, *tops]
        if path.is_file()
        and path.suffix in TEXT
        and not any(part.endswith(("cache", "cache__")) for part in path.parts)
    ]


def _holders(pattern: re.Pattern[str]) -> list[str]:
    return [
        f"{path.relative_to(REPOSITORY)}:{number}"
        for path in _files()
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if pattern.search(line)
    ]


def test_no_file_names_a_place_on_somebodys_machine():
    assert _holders(MACHINE_PLACES) == []


@pytest.mark.parametrize("root", ROOTS_OF_MACHINES)
@pytest.mark.parametrize("line", ['Path("/$root/shared/data")', "see /$root/a", "PATHS=a:/$root/b", "file:///$root/a"])
def test_a_place_on_a_machine_is_known_wherever_it_stands(root, line):
    assert MACHINE_PLACES.search(string.Template(line).substitute(root=root))


@pytest.mark.parametrize("line", ["docs/work/a", "https://h.example/home/a", "the work/home balance", "{base}/work/a"])
def test_a_path_below_something_else_is_no_place_on_a_machine(line):
    assert not MACHINE_PLACES.search(line)


def test_no_file_names_a_package_registry():
    assert _holders(REGISTRIES) == []


def test_test_files_have_names_of_their_own():
    names = Counter(path.name for path in _files() if path.name.startswith("test_") and path.parent.name != "tests")
    assert [name for name, count in names.items() if count > 1] == []
