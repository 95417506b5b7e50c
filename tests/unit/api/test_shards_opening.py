"""Who may write a shard: one opener at a time, the last one alone afterwards, and what a death in between leaves."""

import errno
import fcntl
import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from rollbook.api.direct_completed import completed, cut_off
from rollbook.api.direct_sending import Answered
from rollbook.errors import LedgerError, RollbookError, ShardTakenOverError
from rollbook.ledger.lock import RunLock, holder_of
from rollbook.ledger.lock_file import NOBODY
from rollbook.ledger.shard import ShardLock
from rollbook.records.exchange import Exchange
from rollbook.records.sends import Sends
from run_folder import identities, rows_of
from stub import serving
from unit.api.direct_calls import reply
from unit.api.shard_calls import ShardFolder, planned

DYING = Path(__file__).with_name("dying_opener.py")


@pytest.fixture
def shard(tmp_path):
    return ShardFolder(tmp_path / "run")


def answered(row, **payload):
    return completed(row, Answered(reply(**payload), 1.0), Sends())


def cut(row):
    return cut_off(row, Sends([Exchange(lambda: 0.0)]))


async def test_a_write_returns_the_file_that_holds_the_rollout(shard):
    recording, rows = shard.opened(planned(4), record_omitted=True)
    assert await recording.write(answered(rows[0])) == shard.paths.output
    assert await recording.write(answered(rows[1], _ng_failure_class="agent_run_error")) == shard.paths.failures
    assert await recording.write(cut(rows[2])) == shard.paths.failures
    await recording.close()


async def test_a_try_that_was_cut_off_is_not_written_unless_asked_for_and_a_resume_runs_it(shard):
    recording, rows = shard.opened(planned(2))
    assert await recording.write(cut(rows[0])) is None
    assert await recording.write(answered(rows[1])) == shard.paths.output
    await recording.close()
    assert rows_of(shard.paths.failures) == []
    found = shard.status()
    assert (found["state"], found["coverage"]["interrupted"], found["coverage"]["scored"]) == ("interrupted", 1, 1)


async def test_the_status_is_written_when_it_is_asked_for(shard):
    recording, rows = shard.opened(planned(2))
    assert not shard.paths.batch_status.exists()
    await recording.flush_status()
    assert shard.told()["members"][0]["remaining"] == 2
    await recording.write(answered(rows[0]))
    assert shard.told()["members"][0]["completed"] == 1
    await recording.close()


async def test_of_a_shard_of_very_many_rows_the_status_follows_and_is_whole_at_the_end(shard):
    recording, rows = shard.opened(planned(2001))
    for row in rows[:3]:
        await recording.write(answered(row))
    assert not shard.paths.batch_status.exists()
    await recording.flush_status()
    assert shard.told()["members"][0]["completed"] == 3
    await recording.write(answered(rows[3]))
    await recording.close()
    assert (shard.told()["state"], shard.told()["members"][0]["completed"]) == ("incomplete", 4)


async def test_whoever_opened_a_label_before_writes_no_more_once_it_was_opened_again(shard):
    first, rows = shard.opened(planned(2), "one")
    await first.write(answered(rows[0]))
    second, again = shard.opened(planned(2), "two")
    with pytest.raises(ShardTakenOverError, match="'s1'") as raised:
        await first.write(answered(rows[1]))
    assert isinstance(raised.value, RuntimeError)
    assert isinstance(raised.value, RollbookError)
    await first.close()
    await second.write(answered(again[1]))
    await second.close()
    assert [row["_ng_run_id"] for row in rows_of(shard.paths.output)] == ["two"]
    assert identities(shard.paths.output) == [(1, 0, 0)]
    assert shard.told()["run_id"] == "two"
    assert shard.status()["runs"][0]["damage"] == []


async def test_a_caller_whose_label_was_opened_again_is_told_by_its_awaitables(shard):
    with serving() as stub:
        results = shard.call(stub, planned(3), max_resident_tasks=1)
        await next(results)
        shard.opened(planned(1), "two")
        with pytest.raises(RuntimeError, match="'s1'"):
            [await awaitable for awaitable in results]
        await results.aclose()
    assert rows_of(shard.paths.output) == []


def opened_elsewhere(folder):
    """Open the label in another process, which ends then, and return its id."""
    opens = (
        "import sys; from pathlib import Path; from unit.api.shard_calls import ShardFolder, planned; "
        "ShardFolder(Path(sys.argv[1])).opened(planned(1), 'two')"
    )
    python_path = {"PYTHONPATH": str(Path(__file__).parents[2])}
    with subprocess.Popen([sys.executable, "-c", opens, folder], env=os.environ | python_path) as child:
        return child.pid


async def test_an_opening_by_another_process_keeps_the_call_out(shard):
    first, rows = shard.opened(planned(1), "one")
    pid = opened_elsewhere(shard.folder)
    with pytest.raises(ShardTakenOverError, match=f"'s1' .* pid {pid} "):
        await first.write(answered(rows[0]))
    await first.close()
    assert shard.manifest()["run_id"] == "two"


async def test_an_opening_that_fails_on_its_rows_leaves_the_earlier_call_writing(shard):
    first, rows = shard.opened(planned(1), "one")
    with pytest.raises(RollbookError, match="is that of row 0"):
        shard.opened(planned(1) + planned(1), "two")
    assert await first.write(answered(rows[0])) == shard.paths.output
    await first.close()


async def test_a_resume_that_took_the_run_keeps_the_call_out(shard):
    first, rows = shard.opened(planned(1), "one")
    shard.paths.lock.write_bytes(NOBODY)
    lock = RunLock(shard.paths.lock, now=lambda: 0.0)
    lock.acquire()
    with pytest.raises(ShardTakenOverError, match=f"pid {os.getpid()}"):
        await first.write(answered(rows[0]))
    lock.release()
    with pytest.raises(ShardTakenOverError, match="another process"):
        await first.write(answered(rows[0]))
    await first.close()


def test_a_shard_that_a_run_holds_is_not_opened(shard, monkeypatch):
    monkeypatch.setattr(threading.Event, "wait", lambda _self, _seconds: None)
    shard.folder.mkdir()
    lock = RunLock(shard.paths.lock, now=lambda: 0.0)
    lock.acquire()
    with pytest.raises(LedgerError, match=f"'s1'.* pid {os.getpid()} .* works on it"):
        shard.opened(planned(1))
    lock.release()
    assert [path.name for path in shard.folder.iterdir()] == [shard.paths.lock.name]


async def test_the_lock_file_stays_the_same_for_good_and_names_nobody_after_the_end(shard):
    recording, _ = shard.opened(planned(1), "one")
    inode = shard.paths.lock.stat().st_ino
    assert holder_of(shard.paths.lock).pid == os.getpid()
    again, _ = shard.opened(planned(1), "two")
    await recording.close()
    assert holder_of(shard.paths.lock).pid == os.getpid()
    await again.close()
    assert holder_of(shard.paths.lock) is None
    assert shard.paths.lock.stat().st_ino == inode


async def test_a_call_gives_its_shard_up_with_its_last_rollout_though_nobody_closes_it(shard):
    with serving() as stub:
        assert len(await shard.collected(stub, planned(2))) == 2
    assert holder_of(shard.paths.lock) is None


def test_a_call_without_rows_holds_nothing(shard):
    shard.opened([])
    assert holder_of(shard.paths.lock) is None
    assert shard.status()["coverage"]["planned"] == 0


def test_two_that_write_at_once_wait_for_each_other(tmp_path):
    paths = ShardFolder(tmp_path).paths
    waited = []
    lock = ShardLock(paths, now=lambda: 0.0, sleep=lambda _seconds: (waited.append(1), held.close()))
    with lock.opening() as file:
        lock.take(file)
    held = paths.lock.open("rb")
    fcntl.flock(held, fcntl.LOCK_SH)
    with lock.writing():
        assert waited == [1]


def test_where_locks_do_not_work_the_token_decides(tmp_path, monkeypatch):
    def unsupported(_descriptor, _mode):
        raise OSError(errno.ENOSYS, "no locks")

    monkeypatch.setattr(fcntl, "flock", unsupported)
    paths, waits = ShardFolder(tmp_path).paths, []
    locks = [ShardLock(paths, now=lambda: 0.0, sleep=waits.append) for _ in range(2)]
    for lock in locks:
        with lock.opening() as file:
            lock.take(file)
    with locks[1].writing():
        pass
    with pytest.raises(ShardTakenOverError), locks[0].writing():
        pass
    assert len(waits) == 2


def test_a_lock_file_that_cannot_be_made_is_named(tmp_path):
    folder = tmp_path / "file"
    folder.write_bytes(b"")
    with pytest.raises(LedgerError, match="is a file, and can hold no other"):
        ShardFolder(folder).opened(planned(1))


def test_a_death_while_a_label_is_opened_leaves_the_earlier_shard_or_the_new_one(tmp_path):
    child = subprocess.run(
        [sys.executable, DYING, tmp_path],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])},
    )
    assert child.returncode == 0, child.stderr[-2000:]
    deaths = json.loads(child.stdout)
    assert {death["run"] for death in deaths} == {"old", "new"}
    assert all(death["damage"] == [] and death["law"] for death in deaths), deaths
    assert {(death["run"], death["planned"], death["scored"]) for death in deaths} == {("old", 2, 1), ("new", 3, 0)}
    assert [death["run"] for death in deaths] == sorted((death["run"] for death in deaths), reverse=True)
    assert all(death["fenced"] for death in deaths if death["run"] == "new")
    assert len(deaths) > 10


async def test_a_shard_without_rows_is_over_at_once_and_closing_it_warns_of_nothing(shard, caplog):
    with serving() as stub:
        results = shard.call(stub, [])
        assert [await one for one in results] == []
        await results.aclose()
    assert not caplog.records
    assert shard.status()["exit_code"] == 0


async def test_a_shard_without_rows_has_the_files_that_a_shard_with_one_has(tmp_path):
    empty, full = ShardFolder(tmp_path / "empty"), ShardFolder(tmp_path / "full")
    with serving() as stub:
        assert await empty.collected(stub, []) == []
        await full.collected(stub, planned(1))
    assert sorted(path.name for path in empty.folder.iterdir()) == sorted(path.name for path in full.folder.iterdir())
    assert (rows_of(empty.paths.output), rows_of(empty.paths.failures)) == ([], [])
    assert empty.told()["state"] == full.told()["state"] == "complete"
    assert empty.status()["state"] == "finished"
    assert [event["t"] for event in rows_of(empty.paths.manifest_log)] == ["open", "close"]
    assert holder_of(empty.paths.lock) is None
