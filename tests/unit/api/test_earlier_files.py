"""Files that are kept until others are settled, and put back by whoever kept them, or by the next one."""

import shutil
import signal
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import pytest

from rollbook.api.earlier_files import put_back_left, put_back_unless_settled

NAMES = ("rows.jsonl", "metrics.json", "made_of.json")
DIES = """
import os, signal, sys
from pathlib import Path
from rollbook.api.earlier_files import put_back_unless_settled
files = [Path(name) for name in sys.argv[2:]]
with put_back_unless_settled(files) as settled:
    for path in files:
        path.unlink(missing_ok=True)
        path.write_text("new")
    if sys.argv[1] == "settled":
        settled()
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def files(tmp_path):
    files = [tmp_path / name for name in NAMES]
    for path in files[:2]:
        path.write_text("old")
    return files


def there(files):
    return {path.name: path.read_text() for path in sorted(files[0].parent.iterdir())}


OLD = {"metrics.json": "old", "rows.jsonl": "old"}
NEW = dict.fromkeys(sorted(NAMES), "new")
OF_RUN = sha256(b"old").hexdigest()


def killed(files, when):
    died = subprocess.run([sys.executable, "-c", DIES, when, *map(str, files)], check=False, timeout=60)
    assert died.returncode == -signal.SIGKILL


def replaced(files):
    """Return what was put aside, and take it away."""
    (folder,) = files[0].parent.glob(".replaced-rows-*")
    contents = {path.name: path.read_text() for path in folder.iterdir()}
    shutil.rmtree(folder)
    return contents


def test_what_a_killed_command_kept_is_put_back_by_the_next_and_told(files, caplog):
    killed(files, "before")
    put_back_left(files, OF_RUN)
    assert replaced(files) == NEW
    assert there(files) == OLD
    assert "they are put back as they were" in caplog.text


@pytest.mark.parametrize("of_run", [None, "0" * 64])
def test_what_is_not_proven_to_be_the_runs_stays_where_it_is_and_is_told(files, caplog, of_run):
    killed(files, "before")
    put_back_left(files, of_run)
    (kept,) = files[0].parent.glob(".earlier-rows-*")
    assert {path.name: path.read_text() for path in kept.iterdir()} == OLD
    assert {path.name: path.read_text() for path in files} == NEW
    assert f"mv -i {kept}/* {kept.parent}" in caplog.text


def test_what_a_command_about_other_files_left_is_left_alone(files, caplog):
    for kind in (".earlier-", ".keeping-", ".let-go-"):
        folder = files[0].parent / f"{kind}other-x"
        folder.mkdir()
        (folder / "rows.jsonl").write_text("old")
    put_back_left(files, OF_RUN)
    assert (len(list(files[0].parent.glob(".*-other-x/*"))), caplog.text) == (3, "")


def test_files_that_links_lead_to_are_put_back_and_the_links_stay(files, tmp_path):
    away = tmp_path / "away"
    away.mkdir()
    files[0].rename(away / "real.jsonl")
    files[0].symlink_to("away/real.jsonl")

    def replace():
        (away / "new").write_text("new")
        (away / "new").replace(away / "real.jsonl")

    with pytest.raises(ValueError, match="no"):
        failing(files, replace)
    assert ((away / "real.jsonl").read_text(), files[0].is_symlink()) == ("old", True)


def test_what_cannot_be_put_back_stays_kept(files):
    def replace():
        files[0].unlink()
        files[0].mkdir()

    with pytest.raises(IsADirectoryError):
        failing(files, replace)
    (kept,) = files[0].parent.glob(".earlier-rows-*")
    assert (kept / "rows.jsonl").read_text() == "old"


def test_what_was_settled_before_the_death_stays(files, caplog):
    killed(files, "settled")
    put_back_left(files, OF_RUN)
    assert (there(files), caplog.text) == (NEW, "")


@pytest.mark.parametrize("left", [".keeping-rows-x", ".let-go-rows-x"])
def test_a_folder_that_is_not_whole_or_was_let_go_puts_nothing_back(files, left):
    (files[0].parent / left).mkdir()
    Path(files[0].parent, left, NAMES[0]).write_text("half")
    put_back_left(files, OF_RUN)
    assert there(files) == OLD


def failing(files, do):
    with put_back_unless_settled(files):
        do()
        for path in files[1:]:
            path.write_text("new")
        raise ValueError("no")


def test_an_error_puts_everything_back_and_leaves_nothing(files):
    files[1].unlink()
    with pytest.raises(ValueError, match="no"):
        failing(files, files[0].unlink)
    assert there(files) == {"rows.jsonl": "old"}


def test_a_death_while_files_are_put_back_is_mended_by_the_next(files):
    killed(files, "before")
    (kept,) = files[0].parent.glob(".earlier-*")
    (kept / f"{NAMES[0]}.back").write_text("half")
    files[0].unlink()
    put_back_left(files, OF_RUN)
    assert set(replaced(files)) == {*NAMES[1:]}
    assert there(files) == OLD


@pytest.mark.parametrize("settles", [False, True])
def test_a_block_that_ends_well_leaves_its_files_and_nothing_that_was_kept(files, settles):
    with put_back_unless_settled(files) as settled:
        for path in files:
            path.unlink(missing_ok=True)
            path.write_text("new")
        if settles:
            settled()
    assert there(files) == dict.fromkeys(sorted(NAMES), "new")
