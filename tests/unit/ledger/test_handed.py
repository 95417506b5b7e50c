"""What was handed over, and those who wait for its commit: released together, told the truth, never left waiting."""

import asyncio
import errno
import os
import threading

import pytest

from rollbook.errors import LedgerError
from rollbook.ledger import writer as writing
from rollbook.ledger.handed import Commit, Handed
from rollbook.ledger.paths import RunPaths
from rollbook.ledger.writer import Durability, Writer, WriterOptions
from rollbook.records.codec import RunStamp
from rollbook.records.ending import Ending
from rollbook.records.identity import RolloutKey
from rollbook.records.manifest import Stopped
from rollbook.records.outcome import NeverStarted, Scored
from rollbook.records.task import Rollout
from rollbook.testing.manual_clock import ManualClock

KEY = RolloutKey(0, 0)
ROLLOUT = Rollout(KEY, b"{}", "env", stamped=b'"_ng_task_index":0,"_ng_rollout_index":0')
SCORED = Ending(Scored(1.0), {"reward": 1})
FULL = LedgerError("disk full")


class After:
    """What follows a commit: notes what it was given, and gives something else back."""

    def __init__(self):
        self.given = []

    def __call__(self, value):
        self.given.append(value)
        return f"{value}, safe"


def commit():
    return Commit(loop=asyncio.get_running_loop())


async def waiting(handed):
    """Return a task that waits for `handed`."""

    async def wait():
        return await handed

    task = asyncio.create_task(wait())
    await settled()
    return task


async def settled():
    for _ in range(10):
        await asyncio.sleep(0)


async def test_the_value_is_known_at_once_and_given_once_it_is_safe():
    coming = commit()
    handed = Handed("value", coming)
    waits = await waiting(handed)
    assert handed.value == "value"
    assert not waits.done()
    coming.settle(None)
    assert await waits == "value"


async def test_all_who_wait_for_one_commit_are_released_by_it():
    coming = commit()
    waits = [await waiting(Handed(n, coming)) for n in range(3)]
    coming.settle(None)
    assert await asyncio.gather(*waits) == [0, 1, 2]


async def test_whoever_is_cancelled_is_told_so_only_once_the_commit_has_come():
    coming, after = commit(), After()
    waits = await waiting(Handed("value", coming).followed_by(after))
    for _ in range(3):
        waits.cancel()
        await settled()
        assert not waits.done()
    assert after.given == []
    coming.settle(None)
    await settled()
    assert waits.cancelled()
    assert after.given == ["value"]


async def test_a_cancelled_wait_holds_nobody_else_up():
    coming = commit()
    first, second = await waiting(Handed(1, coming)), await waiting(Handed(2, coming))
    first.cancel()
    coming.settle(None)
    assert await second == 2
    assert first.cancelled()


async def test_what_follows_is_done_once_however_often_the_same_is_awaited():
    coming, after = commit(), After()
    handed = Handed("value", coming).followed_by(after)
    first, second = await waiting(handed), await waiting(handed)
    coming.settle(None)
    assert await asyncio.gather(first, second) == ["value, safe"] * 2
    assert await handed == "value, safe"
    assert after.given == ["value"]


async def test_nothing_follows_a_commit_that_failed():
    coming, after = commit(), After()
    waits = await waiting(Handed("value", coming).followed_by(after))
    coming.settle(FULL)
    with pytest.raises(LedgerError, match="disk full"):
        await waits
    assert after.given == []


async def test_whoever_is_cancelled_while_a_commit_fails_is_told_that_it_failed():
    coming, after = commit(), After()
    waits = await waiting(Handed("value", coming).followed_by(after))
    waits.cancel()
    coming.settle(FULL)
    with pytest.raises(LedgerError, match="disk full"):
        await waits
    assert after.given == []


async def test_another_value_of_the_same_commit_is_safe_with_it_and_followed_by_nothing():
    coming, after = commit(), After()
    waits = await waiting(Handed("value", coming).followed_by(after).of("another"))
    coming.settle(None)
    assert await waits == "another"
    assert after.given == []


async def test_an_error_that_nobody_waits_for_is_nobodys(recwarn):
    told, loop = [], asyncio.get_running_loop()
    loop.set_exception_handler(lambda _loop, context: told.append(context))
    coming = commit()
    coming.settle(FULL)
    del coming
    await settled()
    assert (told, recwarn.list) == ([], [])


async def test_a_commit_comes_once_and_what_is_said_of_it_first_stands():
    coming = commit()
    coming.settle(None)
    coming.settle(FULL)
    assert await Handed("value", coming) == "value"


# Together with the writer.


class Disk:
    """Stands in for the sync of a file's bytes; may be held or full."""

    def __init__(self):
        self.full, self.begun, self.free = False, threading.Event(), threading.Event()
        self.free.set()

    def __call__(self, _descriptor):
        self.begun.set()
        self.free.wait(30)
        if self.full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    async def is_busy(self):
        await asyncio.to_thread(self.begun.wait, 30)


@pytest.fixture
def disk(monkeypatch):
    disk = Disk()
    monkeypatch.setattr(writing, "DATA_SYNC", disk)
    yield disk
    disk.free.set()


def writer(tmp_path, durability=Durability.SYNC):
    return Writer(RunPaths(tmp_path / "r.jsonl"), RunStamp("run", 3), ManualClock(), WriterOptions(durability))


async def test_an_error_reaches_all_who_wait_for_that_commit_or_the_next_and_nobody_is_left_waiting(tmp_path, disk):
    disk.free.clear()
    async with writer(tmp_path) as opened:
        first = [await waiting(opened.reserve(KEY, 0)), await waiting(opened.note(Stopped("SIGTERM")))]
        await disk.is_busy()
        second = [await waiting(opened.reserve(KEY, 1)), await waiting(opened.write(ROLLOUT, SCORED))]
        disk.full = True
        disk.free.set()
        ends = await asyncio.gather(*first, *second, return_exceptions=True)
        assert [type(end) for end in ends] == [LedgerError] * 4
        for later in (
            lambda: opened.reserve(KEY, 2),
            lambda: opened.write(ROLLOUT, SCORED),
            lambda: opened.note(Stopped("SIGTERM")),
        ):
            with pytest.raises(LedgerError, match="No space left"):
                later()


async def test_a_number_whose_waiter_is_cancelled_is_on_disk_when_the_cancellation_arrives(tmp_path, disk):
    disk.free.clear()
    async with writer(tmp_path) as opened:
        waits = await waiting(opened.reserve(KEY, 0))
        await disk.is_busy()
        waits.cancel()
        await settled()
        assert not waits.done()
        disk.free.set()
        await asyncio.wait([waits])
        assert waits.cancelled()
        assert b"[0,0,0]" in (tmp_path / "r_manifest.log").read_bytes()


async def test_without_durability_nobody_waits_for_a_disk(tmp_path, disk):
    disk.free.clear()
    async with writer(tmp_path, Durability.OFF) as opened:
        after = After()
        handed = opened.write(ROLLOUT, SCORED).followed_by(after)
        assert next(handed.__await__(), "done at once") == "done at once"
        assert len(after.given) == 1
    assert b'"reward":1' in (tmp_path / "r.jsonl").read_bytes()


async def test_what_is_written_nowhere_is_safe_at_once_even_where_the_writer_broke(tmp_path, disk):
    disk.full = True
    async with writer(tmp_path) as opened:
        with pytest.raises(LedgerError):
            await opened.reserve(KEY, 0)
        record = await opened.write(ROLLOUT, Ending(NeverStarted("budget")))
        assert record.outcome == NeverStarted("budget")
