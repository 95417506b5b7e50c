"""Code written for NeMo Gym finds every name that it imports."""

import importlib
import sys
from pathlib import Path

import pytest

import rollbook

LINES = (Path(__file__).parent / "import_surface.txt").read_text(encoding="utf-8").splitlines()
SURFACE = [line.partition(":")[::2] for line in LINES if not line.startswith("#")]


@pytest.mark.parametrize(("module", "names"), SURFACE, ids=[module for module, _ in SURFACE])
def test_a_module_of_the_field_holds_the_names_that_are_imported_from_it(module, names):
    imported = importlib.import_module(module)
    assert [name for name in names.split() if not hasattr(imported, name)] == []


def test_the_root_answers_for_every_public_name():
    import nemo_gym  # noqa: PLC0415  the alias is what this test is about

    ours = set(rollbook.__all__) - {"PARENT_DIR"}
    assert {name for name in ours if getattr(nemo_gym, name) is not getattr(rollbook, name)} == set()


def test_the_parent_folder_is_that_of_the_components_searched_when_it_is_imported(tmp_path, monkeypatch):
    (tmp_path / "resources_servers").mkdir()
    monkeypatch.setenv("NEMO_GYM_EXTRA_ROOTS", str(tmp_path))
    monkeypatch.delitem(sys.modules, "nemo_gym", raising=False)
    assert importlib.import_module("nemo_gym").PARENT_DIR == rollbook.component_root() == tmp_path


def test_a_name_that_nobody_has_is_an_import_error():
    with pytest.raises(ImportError):
        exec("from nemo_gym import no_such_name", {})  # noqa: S102  the statement is what this test is about


def test_a_class_of_the_field_is_the_class_of_ours():
    from nemo_gym.base_resources_server import SimpleResourcesServer  # noqa: PLC0415

    assert SimpleResourcesServer is rollbook.SimpleResourcesServer
