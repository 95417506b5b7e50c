"""Cases from the field about the lock of a run: each in a process of its own, on a system call that fails."""

import errno
import json
import os
import subprocess
import sys

import pytest

THREE_WRITES = """
import fcntl, json, os, sys
from pathlib import Path
from rollbook.errors import LedgerError
from rollbook.ledger.lock import RunLock, holder_of

path, times, number, take_over = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4] == "True"
calls, real, waited = 0, fcntl.flock, []

def flock(descriptor, mode):
    global calls
    calls += 1
    if calls <= times:
        raise OSError(number, os.strerror(number))
    return real(descriptor, mode)

fcntl.flock = flock
lock, done, refused = RunLock(path, now=lambda: 0.0, take_over=take_over, sleep=waited.append), 0, None
try:
    lock.acquire()
    for _ in range(3):
        lock.check()
        done += 1
    held_by_us = holder_of(path).pid == os.getpid()
    lock.release()
except LedgerError as error:
    refused, held_by_us = str(error), False
seen = {"done": done, "refused": refused, "warning": lock.warning, "waited": sum(waited), "ours": held_by_us}
print(json.dumps(seen))
"""
ALWAYS = 1_000_000
UNSUPPORTED = [errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP, errno.EINVAL]
FAR = {"token": "t", "pid": 77, "host": "far", "boot": "b", "started": "1", "since": "2026-01-01T00:00:00+00:00"}


@pytest.fixture
def three_writes(tmp_path):
    def three_writes(number, times=ALWAYS, *, take_over=False):
        ended = subprocess.run(
            [sys.executable, "-c", THREE_WRITES, str(tmp_path / ".r.lock"), str(times), str(number), str(take_over)],
            capture_output=True,
            text=True,
            check=True,
        )
        assert ended.stderr == ""
        return json.loads(ended.stdout)

    return three_writes


@pytest.mark.parametrize("number", UNSUPPORTED)
def test_rc_12_a_file_system_without_locks_is_said_once_and_the_run_goes_on(tmp_path, three_writes, number):
    outcome = three_writes(number)
    assert (outcome["done"], outcome["refused"], outcome["ours"]) == (3, None, True)
    assert outcome["warning"].count("file locks do not work on this file system") == 1
    assert os.strerror(number) in outcome["warning"]
    assert outcome["waited"] < 1


def test_rc_12_a_stale_handle_is_passed_over_once_without_a_warning(three_writes):
    outcome = three_writes(errno.ESTALE, times=1)
    assert (outcome["done"], outcome["refused"], outcome["warning"], outcome["waited"]) == (3, None, None, 0)


def test_rc_12_a_handle_that_stays_stale_is_an_error_and_no_holder(tmp_path, three_writes):
    outcome = three_writes(errno.ESTALE)
    assert outcome["done"] == 0
    assert outcome["refused"].startswith(f"{tmp_path / '.r.lock'}: the lock of this run cannot be taken: Stale")
    assert "is writing" not in outcome["refused"]


@pytest.mark.parametrize("number", UNSUPPORTED)
def test_rc_12_a_holder_out_of_sight_stops_the_run_with_the_limit_and_the_way_on(tmp_path, three_writes, number):
    (tmp_path / ".r.lock").write_text(json.dumps(FAR) + "\n")
    outcome = three_writes(number)
    assert (outcome["done"], outcome["waited"]) == (0, 0)
    for words in ("pid 77 on far", "file locks do not work on this file system", os.strerror(number), "--take-over"):
        assert words in outcome["refused"]
    assert json.loads((tmp_path / ".r.lock").read_bytes()) == FAR
    assert three_writes(number, take_over=True)["done"] == 3


@pytest.mark.parametrize("number", [errno.EWOULDBLOCK, errno.EACCES])
def test_rc_12_only_an_answer_that_means_held_is_taken_for_held(three_writes, number):
    outcome = three_writes(number)
    assert (outcome["done"], outcome["warning"]) == (0, None)
    assert "is writing this run" in outcome["refused"]
    assert outcome["waited"] == pytest.approx(1.0)


@pytest.mark.parametrize("number", [0, errno.ENOSYS])
@pytest.mark.parametrize("content", [b"", b'{"token":"t","pi', b"\x00" * 512])
def test_rc_08_a_lock_file_that_a_crash_emptied_or_tore_keeps_nobody_out(tmp_path, three_writes, number, content):
    (tmp_path / ".r.lock").write_bytes(content)
    (tmp_path / "r.jsonl").write_bytes(b"{}\n")
    assert three_writes(number, times=ALWAYS if number else 0)["done"] == 3
    assert (tmp_path / "r.jsonl").read_bytes() == b"{}\n"
