"""The last line of a file that a writer left, however long it is, and when what was done to it is safe."""

import os

import pytest

from rollbook.ledger import tail
from rollbook.ledger.tail import repair_tail, torn_of, whole_bytes

FIRST = b'{"a":1}\n'


@pytest.mark.parametrize("length", [10, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, 5 << 19])
def test_a_row_of_any_length_that_lacks_its_newline_alone_is_completed(tmp_path, length):
    path, row = tmp_path / "r.jsonl", b'{"b":"%s","c":2}' % (b"x" * length)
    path.write_bytes(FIRST + row)
    assert whole_bytes(path) == len(FIRST) + len(row) + 1
    assert repair_tail(path).kept_in is None
    assert path.read_bytes() == FIRST + row + b"\n"
    assert not torn_of(path).exists()


def test_a_newline_that_was_missing_is_on_the_disk_before_anything_follows(tmp_path, monkeypatch):
    path, durable = tmp_path / "r.jsonl", []
    path.write_bytes(FIRST.rstrip())
    monkeypatch.setattr(os, "fsync", lambda descriptor: durable.append(os.pread(descriptor, 100, 0)))
    repair_tail(path)
    assert durable == [FIRST]


def test_what_is_cut_off_is_kept_on_the_disk_before_it_is_gone_from_its_file(tmp_path, monkeypatch):
    path, steps = tmp_path / "r.jsonl", []
    path.write_bytes(FIRST + b'{"torn')
    truncate = os.ftruncate

    def cut(descriptor, size):
        steps.append("cut")
        truncate(descriptor, size)

    monkeypatch.setattr(
        os, "fsync", lambda descriptor: steps.append((os.fstat(descriptor).st_ino, os.fstat(descriptor).st_size))
    )
    monkeypatch.setattr(os, "ftruncate", cut)
    monkeypatch.setattr(tail, "sync_folder", steps.append)
    repair_tail(path)
    of = (torn_of(path).stat().st_ino, len(b'{"torn\n'))
    assert steps == [of, "cut", (path.stat().st_ino, len(FIRST)), tmp_path]
