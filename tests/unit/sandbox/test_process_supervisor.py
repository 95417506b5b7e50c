"""A program that runs another one, and makes sure that all of it is gone afterwards."""

import fcntl
import json
import subprocess
import sys

import pytest

from rollbook.sandbox import DEFAULT_CLEANUP_TIMEOUT, exec_timeout, process_supervisor

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="orphans are adopted on Linux alone")


def supervised(folder, *words, **options):
    settings = {"timeout": 60, "cleanup-timeout": 5, "receipt": folder / "receipt.json", **options}
    flags = [part for name, value in settings.items() for part in (f"--{name}", str(value))]
    command = [sys.executable, "-I", process_supervisor.__file__, *flags, "--", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder, timeout=60)
    return done, json.loads((folder / "receipt.json").read_text())


def test_a_program_ends_with_its_own_code_and_prints_where_it_would(tmp_path):
    done, receipt = supervised(tmp_path, "sh", "-c", "echo out; echo err >&2; exit 3")
    assert (done.returncode, done.stdout, done.stderr) == (3, "out\n", "err\n")
    assert receipt == {"cleanup_confirmed": True, "error": None, "return_code": 3, "timed_out": False}


@pytest.mark.parametrize("left", ["setsid sleep 600 &", "(trap '' TERM; setsid sleep 600 & sleep 600) &"])
def test_what_a_program_leaves_behind_is_gone(tmp_path, left):
    done, receipt = supervised(tmp_path, "sh", "-c", f"exec 9>held; flock 9; {left} exit 0", **{"cleanup-timeout": 1})
    assert (done.returncode, receipt["cleanup_confirmed"]) == (0, True)
    with (tmp_path / "held").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_a_program_is_asked_when_its_time_is_up(tmp_path):
    done, receipt = supervised(
        tmp_path, "sh", "-c", "trap 'echo asked; exit 0' TERM; echo > up; sleep 600 & wait", timeout=3
    )
    assert (done.returncode, done.stdout) == (0, "asked\n")
    assert (receipt["timed_out"], receipt["cleanup_confirmed"]) == (True, True)


def test_a_program_that_does_not_listen_is_killed(tmp_path):
    done, receipt = supervised(
        tmp_path, "sh", "-c", "trap '' TERM; sleep 600", **{"timeout": 2, "cleanup-timeout": 0.3}
    )
    assert done.returncode == receipt["return_code"] == 137
    assert receipt["cleanup_confirmed"] is True


def test_a_stop_that_came_first_starts_nothing(tmp_path):
    (tmp_path / "stop").touch()
    done, receipt = supervised(tmp_path, "touch", "started", **{"stop-file": tmp_path / "stop"})
    assert (done.returncode, receipt["cleanup_confirmed"]) == (0, True)
    assert not (tmp_path / "started").exists()


def test_a_stop_file_stops_a_program(tmp_path):
    done, receipt = supervised(tmp_path, "sh", "-c", "touch stop; sleep 600", **{"stop-file": tmp_path / "stop"})
    assert (done.returncode, receipt["timed_out"], receipt["cleanup_confirmed"]) == (143, False, True)


def test_a_program_that_is_not_there_is_told(tmp_path):
    done, receipt = supervised(tmp_path, "no-such-program")
    assert done.returncode == 127
    assert "no-such-program" in receipt["error"]


def test_a_sandbox_gives_more_time_than_the_program_and_its_clean_up_take():
    assert exec_timeout(timeout=60) > 60 + 3 * DEFAULT_CLEANUP_TIMEOUT
    assert exec_timeout(timeout=60, cleanup_timeout=1) > 60 + 3
