import errno
import io
import os
import tempfile
import tracemalloc

import pytest

from rollbook.errors import InputError, LedgerError
from rollbook.ledger.interleave import interleaved

ROWS = [{"n": n, "text": "\u2028\n", "_ng_rollout_index": repeat} for n in range(3) for repeat in (2, 0, 1)]
LARGE = "x" * 20_000


class FullDisk(io.BytesIO):
    def write(self, _line):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_rows_come_by_repeat_and_else_in_the_order_they_came():
    found = list(interleaved(iter(ROWS)))
    assert found == sorted(ROWS, key=lambda row: row["_ng_rollout_index"])
    assert [list(row) for row in found] == [list(row) for row in ROWS]


def test_memory_follows_neither_the_number_nor_the_size_of_rows():
    rows = ({"n": n, "text": LARGE, "_ng_rollout_index": r} for n in range(500) for r in range(2))
    list(interleaved(ROWS))
    tracemalloc.start()
    try:
        assert sum(1 for _ in interleaved(rows)) == 1000
        assert tracemalloc.get_traced_memory()[1] < 4 << 20
    finally:
        tracemalloc.stop()


def test_a_row_at_fault_raises_before_the_first_row_is_given():
    def rows():
        yield from ROWS
        raise InputError("row 9: at fault")

    with pytest.raises(InputError, match="row 9"):
        next(interleaved(rows()))


def test_a_full_disk_names_the_folder_and_the_way_out(monkeypatch):
    monkeypatch.setattr(tempfile, "TemporaryFile", lambda **_: FullDisk())
    with pytest.raises(LedgerError, match=r"No space left.*TMPDIR"):
        next(interleaved(ROWS))
