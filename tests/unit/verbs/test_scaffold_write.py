"""Planned files on disk: all of them or none."""

import os
from pathlib import PurePosixPath

import pytest

from rollbook.errors import ConfigError, ScaffoldConflictError
from rollbook.verbs.scaffold_write import write_new_files

PLANNED = {PurePosixPath("b/deep/x.txt"): "x\n", PurePosixPath("a/y.txt"): "y\n"}


def names(root):
    return sorted(path.relative_to(root).as_posix() for path in root.rglob("*"))


def test_files_are_written_with_the_folders_they_need_and_nothing_beside(tmp_path):
    assert write_new_files(tmp_path, PLANNED) == (tmp_path / "b/deep/x.txt", tmp_path / "a/y.txt")
    assert names(tmp_path) == ["a", "a/y.txt", "b", "b/deep", "b/deep/x.txt"]
    assert write_new_files(tmp_path, PLANNED) == ()


def test_nothing_is_left_of_files_that_could_not_all_be_written(tmp_path):
    (tmp_path / "a").symlink_to(tmp_path / "nowhere")
    with pytest.raises(FileExistsError):
        write_new_files(tmp_path, PLANNED)
    assert names(tmp_path) == ["a"]


def test_a_folder_in_the_place_of_a_file_is_named(tmp_path):
    (tmp_path / "a" / "y.txt").mkdir(parents=True)
    with pytest.raises(ConfigError, match=r"y\.txt is a folder where a file is needed"):
        write_new_files(tmp_path, PLANNED)
    assert names(tmp_path) == ["a", "a/y.txt"]


def test_a_file_that_is_no_text_is_another_content_and_stays(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "y.txt").write_bytes(b"\xff")
    with pytest.raises(ScaffoldConflictError, match=r"(?s)a/y\.txt.*take it"):
        write_new_files(tmp_path, PLANNED, "\ntake it")
    assert names(tmp_path) == ["a", "a/y.txt"]


def test_a_link_to_nothing_is_another_content_and_stays(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "y.txt").symlink_to("nowhere")
    with pytest.raises(ScaffoldConflictError, match=r"other contents.*(?s:.)*a/y\.txt"):
        write_new_files(tmp_path, PLANNED)
    assert names(tmp_path) == ["a", "a/y.txt"]


def test_a_file_that_appears_meanwhile_stays_where_there_are_no_hard_links(tmp_path, monkeypatch):
    def appears(_source, path):
        if path.name == "y.txt":
            path.write_text("theirs\n")
        raise PermissionError

    monkeypatch.setattr(os, "link", appears)
    with pytest.raises(ScaffoldConflictError, match=r"a/y\.txt appeared meanwhile"):
        write_new_files(tmp_path, PLANNED)
    assert (tmp_path / "a" / "y.txt").read_text() == "theirs\n"
    assert names(tmp_path) == ["a", "a/y.txt"]


def test_files_are_written_where_there_are_no_hard_links(tmp_path, monkeypatch):
    def refused(*_):
        raise PermissionError

    monkeypatch.setattr(os, "link", refused)
    assert len(write_new_files(tmp_path, PLANNED)) == 2
    assert (tmp_path / "b/deep/x.txt").read_text() == "x\n"
