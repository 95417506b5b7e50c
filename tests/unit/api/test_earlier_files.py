"""Files that are kept until others are settled, and put back by whoever kept them, or by the next one."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from rollbook.api.earlier_files import put_back_unless_settled

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


def killed(files, when):
    died = subprocess.run([sys.executable, "-c", DIES, when, *map(str, files)], check=False, timeout=60)
    assert died.returncode == -signal.SIGKILL


def test_what_a_killed_command_kept_is_put_back_by_the_next_and_told(files, caplog):
    killed(files, "before")
    with put_back_unless_settled(files) as settled:
        assert {path.name: path.read_text() for path in files if path.exists()} == OLD
        settled()
    assert there(files) == OLD
    assert "they are put back as they were" in caplog.text


def test_what_was_settled_before_the_death_stays(files, caplog):
    killed(files, "settled")
    with put_back_unless_settled(files) as settled:
        settled()
    assert (there(files), caplog.text) == (NEW, "")


@pytest.mark.parametrize("left", [".keeping-x", ".let-go-x"])
def test_a_folder_that_is_not_whole_or_was_let_go_puts_nothing_back(files, left):
    (files[0].parent / left).mkdir()
    Path(files[0].parent, left, NAMES[0]).write_text("half")
    with put_back_unless_settled(files) as settled:
        settled()
    assert there(files) == OLD


def failing(files):
    with put_back_unless_settled(files):
        files[0].unlink()
        for path in files[1:]:
            path.write_text("new")
        raise ValueError("no")


def test_an_error_puts_everything_back_and_leaves_nothing(files):
    files[1].unlink()
    with pytest.raises(ValueError, match="no"):
        failing(files)
    assert there(files) == {"rows.jsonl": "old"}


def test_a_death_while_files_are_put_back_is_mended_by_the_next(files):
    killed(files, "before")
    (kept,) = files[0].parent.glob(".earlier-*")
    (kept / f"{NAMES[0]}.back").write_text("half")
    with put_back_unless_settled(files) as settled:
        settled()
    assert there(files) == OLD
