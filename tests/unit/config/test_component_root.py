"""Which folder a component takes for its own tree."""

import pytest

from rollbook import PARENT_DIR, component_root


@pytest.fixture
def tree(tmp_path, monkeypatch):
    """An empty current folder, and a path to import from that holds no shelf."""
    for name in ("here", "named", "imported"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setattr("sys.path", ["", str(tmp_path / "imported")])
    monkeypatch.setenv("NEMO_GYM_EXTRA_ROOTS", str(tmp_path / "named"))
    return tmp_path


def test_without_a_shelf_anywhere_it_is_that_of_the_package(tree):
    assert component_root() == PARENT_DIR


@pytest.mark.parametrize("names", [("imported",), ("here", "imported"), ("named", "here", "imported")])
def test_a_named_root_comes_before_the_current_folder_and_the_import_path(tree, names):
    for name in names:
        (tree / name / "resources_servers").mkdir()
    assert component_root() == tree / names[0]


def test_a_root_without_a_shelf_is_passed_over(tree):
    (tree / "named" / "data").mkdir()
    (tree / "here" / "responses_api_agents").mkdir()
    assert component_root() == tree / "here"
