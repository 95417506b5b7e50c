"""What a component imports and leaves to NeMo Gym to bring is among what it asks for."""

import pytest

from rollbook.servers.serving.isolation import component_in
from rollbook.servers.serving.requirements import needs_of

ASKS = "-e nemo-gym[dev] @ ../../\n"
PLACES = {
    "rules": "rules/__init__.py",
    "tables": "rules/tables.py",
    "datasets": "datasets.py",
    "prepare": "prepare.py",
    "tests": "tests/test_app.py",
    "overrides": "overrides.txt",
}


@pytest.fixture
def component(tmp_path):
    """Return a function that writes a component's files and returns its folder."""
    folder = tmp_path / "resources_servers" / "tool"

    def _write(app, requirements=ASKS, **texts):
        files = {"app.py": app, "requirements.txt": requirements} | {PLACES[name]: text for name, text in texts.items()}
        for name, text in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return folder

    return _write


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("import pandas as pd\nimport json, numpy.linalg\n", ("numpy", "pandas")),
        ("from ray.util import queue\nfrom git import Repo\n", ("GitPython", "ray[default]")),
        ("try:\n    import wandb\nexcept ImportError:\n    wandb = None\n", ()),
        ("def later():\n    import datasets\n", ()),
        ("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import openai\n", ()),
        ('CODE = """\nimport numpy as np\n"""\n', ()),
        ("import pandas\nthis is no Python\n", ()),
        ("import pandas\n\0", ()),
        ('\ufeffimport pandas\nDIGITS = "\\d"\n', ("pandas",)),
        ("import pandas\nfrom .......far.tables import read\nfrom ..else_where import thing\n", ("pandas",)),
        ("import tiktoken\n", ()),
    ],
)
def test_what_is_imported_whenever_the_entry_point_is_loaded_is_asked_for(component, text, asked):
    assert needs_of(component(text)).packages == asked


@pytest.mark.parametrize(
    "line",
    [
        "from resources_servers.tool.rules.tables import read",
        "from resources_servers.tool.rules import (\n    tables,\n)",
        "import resources_servers.tool.rules.tables",
        "from .rules import tables",
        "from .rules.tables import read",
        "from rules.tables import read",
    ],
)
def test_the_modules_that_are_loaded_with_it_are_followed(component, line):
    assert needs_of(component(line, tables="import pandas\nfrom . import tables\n")).packages == ("pandas",)


def test_a_module_within_a_folder_finds_its_neighbours(component):
    folder = component("from . import rules", rules="from .tables import read", tables="import scipy")
    assert needs_of(folder).packages == ("scipy",)


def test_scripts_and_tests_beside_it_ask_for_nothing(component):
    folder = component("import json", prepare="import datasets", tests="import pandas\nimport app")
    assert needs_of(folder).packages == ()


def test_a_module_of_its_own_is_not_the_package_of_that_name(component):
    assert needs_of(component("from datasets import rows", datasets="rows = []")).packages == ()


def test_a_line_of_its_own_for_such_a_package_is_the_only_one(component):
    assert needs_of(component("import pandas", f"{ASKS}Pandas==2.2\n")).packages == ("Pandas==2.2",)


def test_a_component_that_does_not_ask_for_the_field_lists_all_that_it_needs(component):
    assert needs_of(component("import pandas", "httpx\n")).packages == ("httpx",)


def test_such_a_package_that_is_not_here_is_told_before_anything_starts(component):
    folder = component("import yappi", overrides="yappi==0\n")
    assert [line.split()[0] for line in component_in(folder).lacking] == ["yappi==0"]
