"""The file behind a lock: what it says of a process, and when that can be read elsewhere."""

import os
import subprocess
import sys

from rollbook.ledger.lock_file import activity_and_start, write_line


def test_processes_are_told_apart_by_when_they_started():
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        later = activity_and_start(child.pid)
        child.kill()
    activity, start = activity_and_start(os.getpid())
    assert activity.isalpha()
    assert 0 < int(start) < int(later[1])


def test_who_holds_the_lock_is_on_the_disk_whole_before_anything_follows(tmp_path, monkeypatch):
    durable = []
    with (tmp_path / "lock").open("w+b") as file:
        file.write(b"a longer line that stood there before\n")
        file.flush()
        monkeypatch.setattr(os, "fsync", lambda descriptor: durable.append(os.pread(descriptor, 100, 0)))
        write_line(file.fileno(), b"a line\n")
    assert durable == [b"a line\n"]
