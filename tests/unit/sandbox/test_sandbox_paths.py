"""Files of a sandbox are reached from outside, and nothing else is."""

import os

import pytest

from rollbook.sandbox import LocalProvider, SandboxPathError, SandboxSpec
from rollbook.sandbox.local.isolation import Isolation
from rollbook.sandbox.local.paths import copy_in, copy_out, make_folder, placed


@pytest.fixture
def root(tmp_path):
    folder = tmp_path / "box"
    folder.mkdir()
    return folder.resolve()


@pytest.fixture
def source(tmp_path):
    file = tmp_path / "source"
    file.write_text("content")
    return file


@pytest.mark.parametrize(
    ("path", "inside"),
    [
        ("a", "a"),
        ("/app/a", "app/a"),
        ("/../../a", "a"),
        ("a/../b", "b"),
        ("./a//b", "a/b"),
        ("/", ""),
        ("ü ñ/✓", "ü ñ/✓"),
    ],
)
def test_the_directory_is_the_root(root, path, inside):
    assert placed(root, path) == root / inside


def test_a_path_of_the_directory_itself_is_that_path(root):
    assert placed(root, f"{root}/a") == root / "a"


def test_a_relative_path_counts_from_where_one_is(root):
    assert placed(root, "a", start=root / "app") == root / "app" / "a"


@pytest.mark.parametrize("path", ["..", "../../etc/passwd", "a/../../b", "a\0b", "a\ud800b"])
def test_a_path_that_leads_out_is_refused(root, path):
    with pytest.raises(SandboxPathError):
        placed(root, path)


def test_a_directory_whose_name_begins_alike_is_outside(root):
    (root.parent / "box-2").mkdir()
    with pytest.raises(SandboxPathError):
        placed(root, "../box-2/x")


def test_folders_are_made_on_the_way(root, source):
    copy_in(root, source, "/app/deep/x")
    assert (root / "app" / "deep" / "x").read_text() == "content"


def test_a_longer_file_is_replaced_whole(root, source):
    (root / "x").write_text("much longer than that")
    copy_in(root, source, "x")
    assert (root / "x").read_text() == "content"


def test_a_link_inside_is_followed(root, source, tmp_path):
    (root / "real").mkdir()
    (root / "link").symlink_to("real")
    copy_in(root, source, "link/x")
    copy_out(root, "real/x", tmp_path / "new" / "out")
    assert (tmp_path / "new" / "out").read_text() == "content"


@pytest.mark.parametrize("target", ["/etc", "../outside", "/"])
def test_nothing_is_written_through_a_link_that_leads_out(root, source, target):
    (root.parent / "outside").mkdir()
    (root / "link").symlink_to(target)
    with pytest.raises(SandboxPathError):
        copy_in(root, source, "link/rollbook-test")
    assert [*(root.parent / "outside").iterdir()] == []


def test_nothing_is_read_through_a_link_that_leads_out(root, source, tmp_path):
    (root / "link").symlink_to(source)
    with pytest.raises(SandboxPathError):
        copy_out(root, "link", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_link_to_itself_is_refused(root, tmp_path):
    (root / "loop").symlink_to("loop")
    with pytest.raises((SandboxPathError, FileNotFoundError)):
        copy_out(root, "loop", tmp_path / "out")


def test_a_link_that_is_swapped_in_after_the_look_is_refused(root, source, monkeypatch):
    (root / "folder").mkdir()
    looked = os.path.realpath

    def look_then_swap(path):
        found = looked(path)
        (root / "folder").rmdir()
        (root / "folder").symlink_to(root.parent)
        return found

    monkeypatch.setattr("os.path.realpath", look_then_swap)
    with pytest.raises(SandboxPathError):
        copy_in(root, source, "folder/x")
    assert not (root.parent / "x").exists()


def swapped_for_a_link(monkeypatch, file, target):
    """Have `file` become a link to `target` between the look and the opening."""
    looked = os.path.realpath

    def look_then_swap(path):
        found = looked(path)
        file.unlink()
        file.symlink_to(target)
        return found

    monkeypatch.setattr("os.path.realpath", look_then_swap)


def test_a_file_that_becomes_a_link_after_the_look_is_not_read(root, source, tmp_path, monkeypatch):
    (root / "x").write_text("of the sandbox")
    swapped_for_a_link(monkeypatch, root / "x", source)
    with pytest.raises(SandboxPathError):
        copy_out(root, "x", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_file_that_becomes_a_link_after_the_look_is_not_written(root, source, tmp_path, monkeypatch):
    (root / "x").write_text("of the sandbox")
    (tmp_path / "victim").write_text("precious")
    swapped_for_a_link(monkeypatch, root / "x", tmp_path / "victim")
    with pytest.raises(SandboxPathError):
        copy_in(root, source, "x")
    assert (tmp_path / "victim").read_text() == "precious"


@pytest.mark.parametrize("path", ["/", ".", "", "tmp/..", "/..", "\ud800"])
def test_what_is_no_file_of_the_sandbox_is_refused_by_its_own_error(root, source, tmp_path, path):
    with pytest.raises(SandboxPathError):
        copy_in(root, source, path)
    with pytest.raises(SandboxPathError):
        copy_out(root, path, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_only_plain_files_are_read(root, tmp_path, make):
    make(root / "thing")
    with pytest.raises(SandboxPathError):
        copy_out(root, "thing", tmp_path / "out")


def test_a_file_in_the_way_of_a_folder_is_refused(root, source):
    (root / "app").write_text("a file")
    with pytest.raises(SandboxPathError, match="no folder"):
        copy_in(root, source, "app/x")
    with pytest.raises(SandboxPathError):
        make_folder(root, "app/y")


@pytest.mark.parametrize("path", ["missing", "missing/too"])
def test_a_file_that_is_not_there_is_said_by_its_name(root, tmp_path, path):
    with pytest.raises(FileNotFoundError, match="missing"):
        copy_out(root, path, tmp_path / "out")


async def test_a_provider_copies_within_the_sandbox_alone(tmp_path, source):
    provider = LocalProvider(str(tmp_path / "boxes"), isolation=Isolation(why_not="asked for none"))
    handle = await provider.create(SandboxSpec())
    try:
        await provider.upload_file(handle, source, "/app/x")
        await provider.download_file(handle, "app/x", tmp_path / "out")
        assert (tmp_path / "out").read_text() == "content"
        with pytest.raises(SandboxPathError):
            await provider.download_file(handle, "../../source", tmp_path / "out")
        with pytest.raises(SandboxPathError):
            await provider.exec(handle, "true", cwd="\ud800")
    finally:
        await provider.aclose()


async def test_a_sandbox_whose_workdir_cannot_be_leaves_no_directory(tmp_path):
    provider = LocalProvider(str(tmp_path / "boxes"), isolation=Isolation(why_not="asked for none"))
    with pytest.raises(SandboxPathError):
        await provider.create(SandboxSpec(workdir="../out"))
    assert [*(tmp_path / "boxes").iterdir()] == []
