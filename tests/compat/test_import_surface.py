"""Code written for NeMo Gym finds every name that it imports."""

import importlib
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


def test_the_parent_folder_is_that_of_the_searched_components():
    import nemo_gym  # noqa: PLC0415  as above

    assert rollbook.component_root() == nemo_gym.PARENT_DIR


def test_a_name_that_nobody_has_is_an_import_error():
    with pytest.raises(ImportError):
        exec("from nemo_gym import no_such_name", {})  # noqa: S102  the statement is what this test is about


def test_a_class_of_the_field_is_the_class_of_ours():
    from nemo_gym.base_resources_server import SimpleResourcesServer  # noqa: PLC0415

    assert SimpleResourcesServer is rollbook.SimpleResourcesServer
