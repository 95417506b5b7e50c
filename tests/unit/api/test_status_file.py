"""The status file of a session: it never fails the run, and a session's last word stays."""

import asyncio
import json
import logging
import threading

import pytest

from rollbook.api.batch import StatusFile
from rollbook.errors import ConfigError, RollbookError
from rollbook.ledger.paths import RunPaths
from rollbook.records.disposition import Rules
from rollbook.records.identity import RolloutKey
from rollbook.records.manifest import PlanDigest, RunManifest
from rollbook.records.run_status import RunState
from rollbook.records.standing import Standings
from rollbook.testing.manual_clock import ManualClock
from rollbook.verbs.batch_status import batch_status_path_for

MANIFEST = RunManifest(run_id="r", created_at="2026-09-20T10:00:00Z", plan=PlanDigest(sha256="", bytes=0, rollouts=1))


class Slow(Standings):
    """A fold that is counted slowly in any thread but the one in which it was made."""

    def __init__(self):
        super().__init__()
        self.made_in = threading.current_thread()
        self.begun, self.released = threading.Event(), threading.Event()
        self.plan(RolloutKey(0, 0))

    def counted(self, *args, **options):
        if threading.current_thread() is not self.made_in:
            self.begun.set()
            assert self.released.wait(60)
        return super().counted(*args, **options)


class Broken(Standings):
    """A fold that cannot be counted."""

    def __init__(self, fault):
        super().__init__()
        self.fault = fault

    def counted(self, *_args, **_options):
        raise self.fault


def status_file(folder, standings):
    return StatusFile(RunPaths(folder / "r.jsonl"), MANIFEST, standings, Rules(), ManualClock())


def state_in(folder):
    return json.loads(batch_status_path_for(folder / "r.jsonl").read_bytes())["state"]


@pytest.mark.parametrize("cancellations", [0, 1, 3])
async def test_what_is_written_after_the_block_is_not_overwritten_by_a_write_that_had_begun(tmp_path, cancellations):
    standings = Slow()
    file, leave = status_file(tmp_path, standings), asyncio.Event()

    async def session():
        try:
            async with file.kept():
                await leave.wait()
        finally:
            file.write(RunState.FINISHED)

    running = asyncio.create_task(session())
    await file.clock.asleep()
    file.clock.advance(5.0)
    assert await asyncio.to_thread(standings.begun.wait, 60)
    if cancellations == 0:
        leave.set()
    for _ in range(max(cancellations, 1)):
        if cancellations:
            running.cancel()
        for _ in range(10):
            await asyncio.sleep(0)
    left_early = running.done()
    standings.released.set()
    assert not left_early
    (left,) = await asyncio.gather(running, return_exceptions=True)
    assert isinstance(left, asyncio.CancelledError) is bool(cancellations)
    assert state_in(tmp_path) == "incomplete"


@pytest.mark.parametrize(
    "fault",
    [IndexError("x"), ZeroDivisionError(), TypeError(), OSError(), RuntimeError(), ConfigError("x"), KeyError()],
)
async def test_whatever_keeps_a_status_from_being_written_is_logged_once_and_fails_nothing(tmp_path, caplog, fault):
    file = status_file(tmp_path, Broken(fault))
    with caplog.at_level(logging.WARNING):
        async with file.kept():
            await file.clock.asleep()
            file.clock.advance(5.0)
            await file.clock.asleep()
        file.write(RunState.FINISHED)
    assert [record.message for record in caplog.records if "status file" in record.message] == [
        f"the status file of {tmp_path / 'r.jsonl'} cannot be written and is not written any more: {fault}"
    ]
    traced = any(record.exc_info for record in caplog.records)
    assert traced is not isinstance(fault, OSError | RollbookError)
