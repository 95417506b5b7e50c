"""What the one writer of a run puts on disk, in which order, and what it refuses once the disk or the lock is gone."""

import asyncio
import errno
import os
import threading
from collections import Counter
from pathlib import Path

import msgspec
import pytest

from rollbook.errors import LedgerError
from rollbook.ledger import writer as writing
from rollbook.ledger.lock import RunLock
from rollbook.ledger.manifest_store import read_log
from rollbook.ledger.paths import RunPaths
from rollbook.ledger.reader import read_lines, read_records
from rollbook.ledger.writer import Durability, Writer, WriterOptions
from rollbook.records.codec import RunStamp
from rollbook.records.ending import Ending
from rollbook.records.failure_kinds import Delivery
from rollbook.records.identity import RolloutKey
from rollbook.records.manifest import Refused, Reserved, Stopped, unflat
from rollbook.records.outcome import Failed, Interrupted, NeverStarted, Scored
from rollbook.records.task import Rollout
from rollbook.testing.manual_clock import ManualClock

STAMP = RunStamp("run", cap=3)
SCORED = Ending(Scored(1.0), {"reward": 1})


def rollout(task, attempt=0):
    stamps = {"_ng_task_index": task, "_ng_rollout_index": 0, "_ng_attempt_index": attempt, "agent_ref": {"name": "a"}}
    return Rollout(RolloutKey(task, 0), b"{}", "env", "a", attempt, stamped=msgspec.json.encode(stamps)[1:-1])


@pytest.fixture
def paths(tmp_path):
    return RunPaths(tmp_path / "out" / "r.jsonl")


def writer(paths, clock=None, **options):
    return Writer(paths, STAMP, clock or ManualClock(), WriterOptions(**options))


def events(paths):
    return [event for _, event in read_log(paths.manifest_log)]


def reserved(paths):
    return [attempt for event in events(paths) if isinstance(event, Reserved) for attempt in unflat(event.a)]


def rows(path):
    return [msgspec.json.decode(line) for _, line in read_lines(path)]


class Disk:
    """Stands in for the sync of a file's bytes: says which files were made durable, in order; may be held or full."""

    def __init__(self, paths):
        self.paths, self.synced, self.full = paths, [], False
        self.busy = threading.Event()
        self.free = threading.Event()
        self.free.set()

    def __call__(self, descriptor):
        self.busy.set()
        self.free.wait(30)
        if self.full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        found = os.fstat(descriptor)
        files = (self.paths.manifest_log, self.paths.failures, self.paths.output)
        self.synced += [path.name for path in files if os.path.samestat(found, path.stat())]


@pytest.fixture
def disk(paths, monkeypatch):
    disk = Disk(paths)
    monkeypatch.setattr(writing, "DATA_SYNC", disk)
    yield disk
    disk.free.set()


async def test_every_ending_is_one_line_in_its_file(paths):
    async with writer(paths) as opened:
        await asyncio.gather(*(opened.write(rollout(n), Ending(Scored(1.0), {"n": n, "reward": 1})) for n in range(50)))
        await opened.write(rollout(50), Ending(Failed("agent_run_error", "m")))
    assert sorted(row["n"] for row in rows(paths.output)) == list(range(50))
    assert len(rows(paths.failures)) == 1
    assert sum(1 for _ in read_records(paths)) == 51


async def test_every_file_of_a_run_is_there_from_its_first_moment(paths):
    async with writer(paths):
        assert [path.read_bytes() for path in (paths.output, paths.failures, paths.manifest_log)] == [b"", b"", b""]


async def test_a_number_is_durable_before_it_is_handed_out(paths, disk):
    disk.free.clear()
    async with writer(paths) as opened:
        handed_out = asyncio.ensure_future(opened.reserve(RolloutKey(0, 0), 0))
        await asyncio.sleep(0)
        assert not handed_out.done()
        disk.free.set()
        await handed_out
        assert disk.synced == ["r_manifest.log"]
        assert reserved(paths) == [(RolloutKey(0, 0), 0)]


async def test_an_ending_is_durable_before_anybody_is_told(paths, disk):
    async with writer(paths) as opened:
        record = await opened.write(rollout(0), SCORED)
        assert disk.synced == ["r.jsonl"]
        assert [saved.outcome for saved in read_records(paths)] == [record.outcome]


async def test_in_one_commit_the_log_is_durable_before_the_rows(paths, disk):
    async with writer(paths) as opened:
        await asyncio.gather(
            opened.write(rollout(0), SCORED),
            opened.write(rollout(1), Ending(Failed("agent_run_error", "m"))),
            opened.reserve(RolloutKey(2, 0), 0),
        )
    assert disk.synced == ["r_manifest.log", "r_failures.jsonl", "r.jsonl"]
    (event,) = events(paths)
    assert event.sizes == (0, 0)


async def test_what_arrives_while_the_disk_is_busy_goes_out_in_one_line_and_one_sync(paths, disk):
    disk.free.clear()
    async with writer(paths) as opened:
        waiting = [asyncio.ensure_future(opened.reserve(RolloutKey(0, 0), 0))]
        await asyncio.to_thread(disk.busy.wait, 30)
        waiting += [asyncio.ensure_future(opened.reserve(RolloutKey(n, 0), 0)) for n in range(1, 100)]
        waiting += [asyncio.ensure_future(opened.write(rollout(n), SCORED)) for n in range(100, 200)]
        await asyncio.sleep(0)
        disk.free.set()
        await asyncio.gather(*waiting)
    assert [len(event.a) // 3 for event in events(paths)] == [1, 99]
    assert sorted(key.task for key, _ in reserved(paths)) == list(range(100))
    assert Counter(disk.synced)["r.jsonl"] == 1
    assert len(rows(paths.output)) == 100


async def test_what_waits_behind_a_commit_that_fails_is_told_so_as_well(paths, disk):
    disk.free.clear()
    async with writer(paths) as opened:
        first = asyncio.ensure_future(opened.reserve(RolloutKey(0, 0), 0))
        await asyncio.to_thread(disk.busy.wait, 30)
        second = opened.write(rollout(1), SCORED)
        disk.full = True
        disk.free.set()
        with pytest.raises(LedgerError):
            await first
        with pytest.raises(LedgerError):
            next(second.__await__())
    assert rows(paths.output) == []


async def test_a_reservation_says_how_much_was_committed_and_when(paths):
    clock = ManualClock()
    async with writer(paths, clock) as opened:
        await opened.write(rollout(0), SCORED)
        await opened.write(rollout(1), Ending(Failed("agent_run_error", "m")))
        clock.advance(2.5)
        await opened.reserve(RolloutKey(2, 0), 0)
    (event,) = events(paths)
    assert event.sizes == (paths.output.stat().st_size, paths.failures.stat().st_size)
    assert event.after == 2.5


async def test_a_writer_that_follows_counts_from_the_bytes_that_it_found(paths):
    async with writer(paths) as first:
        await first.write(rollout(0), SCORED)
    async with writer(paths) as second:
        assert second.sizes == (paths.output.stat().st_size, 0)
        await second.write(rollout(1), SCORED)
        assert second.sizes == (paths.output.stat().st_size, 0)
    assert [row["_ng_task_index"] for row in rows(paths.output)] == [0, 1]


async def test_events_are_lines_in_the_order_in_which_they_were_noted(paths):
    noted = [Refused([0, 0, 1], "503"), Stopped("SIGTERM")]
    async with writer(paths) as opened:
        for event in noted:
            await opened.note(event)
    assert events(paths) == noted


async def test_flush_hands_lines_to_the_system_and_forces_nothing(paths, disk):
    async with writer(paths, durability=Durability.FLUSH) as opened:
        await opened.reserve(RolloutKey(0, 0), 0)
        await opened.write(rollout(0), SCORED)
        assert (len(reserved(paths)), len(rows(paths.output))) == (1, 1)
    assert disk.synced == []


async def test_off_waits_for_nothing_and_has_written_everything_when_it_closes(paths, disk):
    gate = threading.Event()
    async with writer(paths, durability=Durability.OFF, may_write=lambda: gate.wait(30)) as opened:
        await opened.reserve(RolloutKey(0, 0), 0)
        record = await opened.write(rollout(0), SCORED)
        assert record.outcome == Scored(1.0)
        assert paths.output.read_bytes() == b""
        gate.set()
    assert disk.synced == []
    assert (len(reserved(paths)), len(rows(paths.output))) == (1, 1)


async def test_off_still_says_that_the_disk_refused_its_last_lines(paths):
    paths.output.parent.mkdir(parents=True)
    paths.output.symlink_to("/dev/full")
    with pytest.raises(LedgerError, match="No space left"):
        async with writer(paths, durability=Durability.OFF) as opened:
            await opened.write(rollout(0), SCORED)


@pytest.mark.parametrize("recorded", [True, False])
async def test_a_rollout_that_never_started_leaves_a_row_on_request_alone(paths, recorded):
    async with writer(paths, record_omitted=recorded) as opened:
        record = await opened.write(rollout(0), Ending(NeverStarted("why")))
    assert record.outcome == NeverStarted("why")
    saved = rows(paths.failures)
    assert len(saved) == int(recorded)
    assert all(row["_ng_omitted_rollout"] is row["_ng_dispatch_drained"] is True for row in saved)
    assert [found.outcome for found in read_records(paths)] == [NeverStarted("why")] * int(recorded)


@pytest.mark.parametrize("recorded", [True, False])
@pytest.mark.parametrize(("told", "legacy"), [("kill_shaped", None), ("judge_failed", "judge_failed")])
async def test_an_attempt_that_the_agent_says_left_no_result_is_one_row_of_the_history(paths, recorded, told, legacy):
    outcome = Interrupted(told, "killed", Delivery.POSSIBLY_DELIVERED)
    ending = Ending(outcome, {"reward": 0.0, "response": {}, "_ng_no_persist": True, "note": "n"})
    async with writer(paths, record_omitted=recorded) as opened:
        await opened.write(rollout(0, attempt=2), ending)
    (row,) = rows(paths.failures)
    assert (row["_ng_failure_class"], row["_ng_no_persist"], row["_ng_run_id"]) == ("kill_shaped", True, "run")
    assert row.get("_ng_failure_legacy_class") == legacy
    assert row["note"] == "n"
    assert not {"reward", "response", "_ng_omitted_rollout"} & set(row)
    (record,) = read_records(paths)
    assert record.attempt == 2
    assert isinstance(record.outcome, Interrupted)
    assert not record.outcome.may_replay


def nested(depth):
    value = []
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    "bad", [object(), "\ud800", nested(1100), nested(100_000)], ids=["no type", "surrogate", "deep", "deepest"]
)
async def test_a_row_that_is_no_json_becomes_a_failure_that_keeps_evidence(paths, bad):
    async with writer(paths) as opened:
        record = await opened.write(rollout(0), Ending(Scored(1.0), {"reward": 1, "bad": bad}))
        await opened.write(rollout(1), SCORED)
    assert isinstance(record.outcome, Failed)
    assert record.outcome.kind == "persistence_failed"
    (row,) = rows(paths.failures)
    assert "bad" in row["_ng_failure_evidence"]
    assert len(row["_ng_failure_evidence"]) <= 2000
    assert [found.key.task for found in read_records(paths)] == [0, 1]


async def test_no_number_that_json_lacks_reaches_a_line(paths):
    async with writer(paths) as opened:
        await opened.write(rollout(0), Ending(Scored(1.0), {"reward": 1, "loss": float("nan"), "top": float("inf")}))
    (row,) = rows(paths.output)
    assert (row["loss"], row["top"]) == (None, None)


async def test_a_full_disk_stops_the_writer_and_keeps_what_was_acknowledged(paths, disk):
    async with writer(paths) as opened:
        await opened.write(rollout(0), SCORED)
        disk.full = True
        with pytest.raises(LedgerError, match="No space left"):
            await opened.write(rollout(1), SCORED)
        disk.full = False
        with pytest.raises(LedgerError, match="free the disk and start the run again with --resume"):
            await opened.write(rollout(2), SCORED)
        with pytest.raises(LedgerError, match="--resume"):
            await opened.reserve(RolloutKey(3, 0), 0)
        with pytest.raises(LedgerError, match="--resume"):
            await opened.note(Stopped("why"))
    assert rows(paths.output)[0]["_ng_task_index"] == 0
    assert events(paths) == []


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no device that is always full")
async def test_a_log_that_cannot_grow_hands_out_no_number_and_holds_back_the_rows_behind_it(paths):
    paths.output.parent.mkdir(parents=True)
    paths.manifest_log.symlink_to("/dev/full")
    async with writer(paths) as opened:
        found = await asyncio.gather(
            opened.reserve(RolloutKey(0, 0), 0), opened.write(rollout(1), SCORED), return_exceptions=True
        )
        with pytest.raises(LedgerError, match="No space left"):
            await opened.reserve(RolloutKey(1, 0), 0)
    assert [type(error) for error in found] == [LedgerError, LedgerError]
    assert "free the disk" in str(found[0])
    assert paths.output.read_bytes() == b""


async def test_a_writer_whose_lock_was_taken_over_writes_nothing_more(paths):
    paths.output.parent.mkdir(parents=True)
    lock = RunLock(paths.lock, now=ManualClock().now)
    lock.acquire()
    async with writer(paths, may_write=lock.check) as opened:
        await opened.write(rollout(0), SCORED)
        paths.lock.write_text('{"token":"another"}\n')
        with pytest.raises(LedgerError, match="took over this run"):
            await opened.write(rollout(1), SCORED)
        with pytest.raises(LedgerError, match="took over this run"):
            await opened.reserve(RolloutKey(2, 0), 0)
    lock.release()
    assert [row["_ng_task_index"] for row in rows(paths.output)] == [0]
    assert events(paths) == []


async def test_whatever_breaks_the_disk_nobody_waits_for_ever(paths, disk):
    disk.full = True
    async with writer(paths) as opened:
        writes = (opened.write(rollout(n), SCORED) for n in range(3))
        found = await asyncio.gather(*writes, return_exceptions=True)
    assert [type(error) for error in found] == [LedgerError] * 3


async def test_a_cancelled_caller_does_not_lose_its_line(paths):
    async with writer(paths) as opened:
        task = asyncio.ensure_future(opened.write(rollout(0), SCORED))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await opened.write(rollout(1), SCORED)
    assert len(rows(paths.output)) == 2


async def test_closing_waits_for_lines_through_cancellation(paths, disk):
    async def session():
        async with writer(paths) as opened:
            pending.append(asyncio.ensure_future(opened.write(rollout(0), SCORED)))
            await asyncio.sleep(0)
            begun.set()

    pending, begun = [], asyncio.Event()
    disk.free.clear()
    task = asyncio.create_task(session())
    await begun.wait()
    for _ in range(2):
        task.cancel()
        await asyncio.sleep(0)
    assert not task.done()
    disk.free.set()
    found = await asyncio.gather(task, *pending, return_exceptions=True)
    assert isinstance(found[0], asyncio.CancelledError)
    assert len(rows(paths.output)) == 1


async def test_an_error_of_any_kind_fails_who_waits_and_lets_nobody_wait_for_ever(paths, monkeypatch):
    async with writer(paths) as opened:
        monkeypatch.setattr(opened, "_commit", lambda _batch: (_ for _ in ()).throw(KeyError("odd")))
        with pytest.raises(LedgerError):
            await asyncio.wait_for(opened.reserve(RolloutKey(0, 0), 0), 60)


LONG = b'{"note":"' + b"x" * 40_000 + b'","reward":1}'


async def test_short_and_long_replies_and_written_rows_stand_in_the_order_in_which_they_came(paths):
    bodies = [LONG if n % 3 else b'{"n":%d,"reward":1}' % n for n in range(1500)]
    async with writer(paths) as opened:
        await asyncio.gather(
            *(opened.write(rollout(n), Ending(Scored(1.0), kept=body)) for n, body in enumerate(bodies)),
            opened.write(rollout(1500), SCORED),
        )
        assert opened.sizes == (paths.output.stat().st_size, 0)
    lines = paths.output.read_bytes().splitlines(keepends=True)
    assert [line[: len(body) - 1] for line, body in zip(lines, bodies, strict=False)] == [body[:-1] for body in bodies]
    assert [msgspec.json.decode(line)["_ng_task_index"] for line in lines] == [*range(1501)]


@pytest.mark.parametrize("taken", [1, 3, 4, 7])
def test_a_system_that_takes_a_part_at_a_time_is_given_every_byte_once(tmp_path, monkeypatch, taken):
    real, pieces = os.writev, [b"ab", b"", memoryview(b"cdefg"), b"h\n"]
    monkeypatch.setattr(writing.os, "writev", lambda file, given: real(file, [b"".join(given)[:taken]]))
    with writing.append_to(tmp_path / "file") as file:
        writing._write_all(file.fileno(), pieces)
    assert (tmp_path / "file").read_bytes() == b"abcdefgh\n"
