"""Search roots and the resolution of paths."""

import os
import sys

import pytest

from rollbook.config import roots
from rollbook.config.roots import (
    PARENT_DIR,
    ROOT_DIR,
    add_search_dirs,
    close_paths,
    put_roots_on_import_path,
    require_read_path,
    resolve_read_path,
    search_roots,
)
from rollbook.errors import ConfigPathNotFoundError


def test_roots_are_the_extra_ones_the_current_folder_and_our_own(here, monkeypatch):
    monkeypatch.setenv("NEMO_GYM_EXTRA_ROOTS", f"/one{os.pathsep}{os.pathsep}/two")
    monkeypatch.setenv("ROLLBOOK_EXTRA_ROOTS", f"/three{os.pathsep}/one")
    found = [str(root) for root in search_roots(["/zero"])]
    assert found == ["/zero", "/one", "/two", "/three", str(here), str(PARENT_DIR)]


def test_our_own_folders_are_where_the_package_is():
    assert (ROOT_DIR / "errors.py").is_file()
    assert PARENT_DIR.parent == ROOT_DIR
    assert roots.CACHE_DIR == roots.WORKING_DIR / "cache"
    assert roots.RESULTS_DIR == roots.WORKING_DIR / "results"


def test_the_first_root_that_holds_a_path_wins(write, here, monkeypatch):
    write("first/a.yaml")
    write("a.yaml")
    monkeypatch.setenv("NEMO_GYM_EXTRA_ROOTS", "first")
    assert resolve_read_path("a.yaml") == here / "first/a.yaml"
    assert resolve_read_path("a.yaml", lambda path: path.parent == here) == here / "a.yaml"


def test_code_imported_from_a_folder_finds_the_files_beside_it(write, here, monkeypatch):
    prompt = write("suites/resources_servers/chess/prompts/judge.yaml")
    monkeypatch.setattr(sys, "path", [str(here / "plain"), str(here / "suites")])
    assert resolve_read_path("resources_servers/chess/prompts/judge.yaml") == prompt
    monkeypatch.setattr(sys, "path", [str(PARENT_DIR), str(here / "suites")])
    write("suites/resources_servers/mcqa/app.py")
    assert resolve_read_path("resources_servers/mcqa/app.py") == PARENT_DIR / "resources_servers/mcqa/app.py"


def test_a_path_that_nothing_holds_is_resolved_under_the_first_root(monkeypatch):
    monkeypatch.setenv("NEMO_GYM_EXTRA_ROOTS", "/one")
    assert str(resolve_read_path("no/such")) == "/one/no/such"


def test_an_absolute_path_is_itself(write):
    path = write("a.yaml")
    assert resolve_read_path(path) == path
    with pytest.raises(ConfigPathNotFoundError, match="the path is absolute"):
        require_read_path(path.with_name("b"), "file")


def test_added_folders_come_first_and_reach_children(write, here, monkeypatch):
    write("extra/a.yaml")
    monkeypatch.setenv("NEMO_GYM_EXTRA_ROOTS", "/one")
    add_search_dirs(["extra"])
    assert search_roots()[:2] == (here / "extra", search_roots()[1])
    assert os.environ["NEMO_GYM_EXTRA_ROOTS"] == f"{here / 'extra'}{os.pathsep}/one"


def test_a_folder_to_search_must_be_there(monkeypatch):
    with pytest.raises(ConfigPathNotFoundError, match=r"no folder .*nowhere to search; check --search-dir") as caught:
        add_search_dirs(["nowhere"])
    assert caught.value.exit_code == 2
    assert "NEMO_GYM_EXTRA_ROOTS" not in os.environ


@pytest.mark.parametrize("deep", ["resources_servers", "environments/colours", "benchmarks/group/sums"])
def test_a_folder_that_lies_in_a_root_is_answered_with_the_root(deep, write, here):
    write(f"suite/{deep}/config.yaml")
    with pytest.raises(ConfigPathNotFoundError, match=rf"{deep} holds none of .*; did you mean {here / 'suite'}\?"):
        add_search_dirs([f"suite/{deep}"])


def test_a_folder_that_holds_nothing_to_be_found_is_refused(write):
    write("other/deep/notes.txt")
    with pytest.raises(
        ConfigPathNotFoundError, match=r"other holds none of resources_servers/, .*benchmarks/; name the"
    ):
        add_search_dirs(["other"])


@pytest.mark.parametrize(
    "held", ["mine.yaml", "data/rows.jsonl", "driver.py", "drivers/__init__.py", "environments/a/x"]
)
def test_a_folder_with_files_that_can_be_named_is_searched(held, write, here, monkeypatch):
    monkeypatch.setenv("NEMO_GYM_EXTRA_ROOTS", "")
    write(f"extra/{held}")
    searched = here / "extra" if held.count("/") < 3 else (here / "extra" / held).parent
    add_search_dirs([str(searched)])
    assert search_roots()[0] == searched


def test_a_root_of_a_variable_that_is_not_there_is_told_once(here, monkeypatch, caplog):
    monkeypatch.setenv("ROLLBOOK_EXTRA_ROOTS", str(here / "gone"))
    add_search_dirs([])
    add_search_dirs([])
    (warning,) = caplog.messages
    assert warning.startswith(f"ROLLBOOK_EXTRA_ROOTS names {here / 'gone'}, which is no folder")


@pytest.mark.parametrize(
    ("asked", "close"),
    [
        ("resources_servers/colour/configs/colour.yaml", "resources_servers/colours/configs/colours.yaml"),
        ("resource_servers/colours/configs/colours.yaml", "resources_servers/colours/configs/colours.yaml"),
        ("resources_servers/colours/configs/colour.yaml", "resources_servers/colours/configs/colours.yaml"),
        ("resources_servers/colour/nothing.yaml", "resources_servers/colours"),
        ("utterly/different", None),
    ],
)
def test_close_paths_mend_the_first_part_that_is_wrong(write, asked, close):
    write("resources_servers/colours/configs/colours.yaml")
    assert close_paths(asked)[:1] == ((close,) if close else ())


def test_close_paths_of_an_absolute_path_are_absolute(write, here):
    write("colours.yaml")
    assert close_paths(here / "colour.yaml") == (str(here / "colours.yaml"),)


def test_roots_become_importable_once(here, monkeypatch):
    monkeypatch.setattr(sys, "path", ["/elsewhere"])
    put_roots_on_import_path()
    put_roots_on_import_path()
    assert sys.path == [str(here), str(PARENT_DIR), "/elsewhere"]


def test_roots_are_imported_from_in_their_order_whatever_the_path_held(here, monkeypatch):
    monkeypatch.setattr(sys, "path", ["/elsewhere", str(here)])
    put_roots_on_import_path()
    assert sys.path == [str(here), str(PARENT_DIR), "/elsewhere"]
