"""The ledger as a session sees it: what it says of itself in the log, and which numbers it hands out over sessions."""

import asyncio

import pytest

from rollbook.errors import LedgerError
from rollbook.ledger import writer as writing
from rollbook.ledger.history import read_history
from rollbook.ledger.manifest_store import read_log
from rollbook.ledger.paths import RunPaths
from rollbook.ledger.writer import Writer
from rollbook.records.codec import RunStamp
from rollbook.records.disposition import Disposition, Rules
from rollbook.records.ending import Ending
from rollbook.records.identity import RolloutKey
from rollbook.records.manifest import Closed, Cut, Opened, Refused, Reserved, Stopped
from rollbook.records.outcome import Failed, NeverStarted, Scored
from rollbook.records.standing import Standings
from rollbook.records.task import Rollout
from rollbook.testing.manual_clock import ManualClock
from rollbook.verbs.session_ledger import SessionLedger

SCORED = Ending(Scored(1.0), {"reward": 1})
FAILED = Ending(Failed("agent_run_error", "m"))


def rollout(task):
    line = b'{"_ng_task_index":%d,"_ng_rollout_index":0}' % task
    return Rollout(RolloutKey(task, 0), line, "env", "a", stamped=b'"_ng_task_index":%d,"_ng_rollout_index":0' % task)


@pytest.fixture
def paths(tmp_path):
    return RunPaths(tmp_path / "r.jsonl")


async def session(paths, number, work, clock=None):
    """Let `work` have a session's ledger over what the files say, and return the fold that it left."""
    clock = clock or ManualClock()
    standings = read_history(paths).standings
    async with Writer(paths, RunStamp("run", cap=3), clock) as writer:
        ledger = SessionLedger(writer, standings, "run", number, clock)
        async with ledger.opened():
            await work(ledger)
    return standings


def events(paths):
    return [event for _, event in read_log(paths.manifest_log)]


async def idle(_ledger):
    pass


async def test_a_session_says_when_it_opened_and_how_and_when_it_closed(paths):
    clock = ManualClock(0.0)

    async def work(ledger):
        await ledger.write(await ledger.reserve(rollout(0)), SCORED)
        clock.advance(2.5)

    await session(paths, 1, work, clock)
    sizes = (paths.output.stat().st_size, 0)
    opened, reserved, closed = events(paths)
    assert opened == Opened(1, "run", "1970-01-01T00:00:00.000Z", (0, 0))
    assert reserved == Reserved([0, 0, 0], (0, 0))
    assert closed == Closed("finished", "1970-01-01T00:00:02.500Z", sizes, 2.5)
    await session(paths, 2, idle)
    assert events(paths)[3].sizes == sizes


async def test_a_session_that_was_stopped_or_broke_says_so(paths):
    async def stopped(ledger):
        await ledger.stopped("SIGTERM")

    async def broken(_ledger):
        raise ZeroDivisionError

    await session(paths, 1, stopped)
    with pytest.raises(ZeroDivisionError):
        await session(paths, 2, broken)
    assert [event.how for event in events(paths) if isinstance(event, Closed)] == [
        "interrupted: SIGTERM",
        "failed: ZeroDivisionError",
    ]
    assert Stopped("SIGTERM") in events(paths)


async def test_a_number_is_never_handed_out_twice_over_sessions_whatever_became_of_it(paths):
    numbers = []

    def ending(end):
        async def work(ledger):
            attempt = await ledger.reserve(rollout(0))
            numbers.append(attempt.attempt)
            await end(ledger, attempt)

        return work

    async def leave(_ledger, _attempt):
        pass

    ends = [
        lambda ledger, attempt: ledger.write(attempt, FAILED),
        lambda ledger, attempt: ledger.refused(attempt, "503"),
        lambda ledger, attempt: ledger.cut([attempt], "SIGTERM"),
        leave,
        lambda ledger, attempt: ledger.write(attempt, SCORED),
    ]
    for number, end in enumerate(ends, start=1):
        await session(paths, number, ending(end))
    assert numbers == [0, 1, 2, 3, 4]
    assert read_history(paths).standings.next_attempt(RolloutKey(0, 0)) == 5
    assert Refused([0, 0, 1], "503") in events(paths)
    assert Cut([0, 0, 2], "SIGTERM") in events(paths)


async def test_numbers_asked_for_at_once_differ(paths):
    async def work(ledger):
        attempts = await asyncio.gather(*(ledger.reserve(rollout(0)) for _ in range(20)))
        assert sorted(attempt.attempt for attempt in attempts) == list(range(20))

    await session(paths, 1, work)


async def test_the_number_travels_in_the_request_and_on_the_record(paths):
    async def work(ledger):
        await ledger.write(await ledger.reserve(rollout(0)), FAILED)
        second = await ledger.reserve(rollout(0))
        assert b'"_ng_attempt_index":1' in second.line
        record = await ledger.write(second, SCORED)
        assert (record.attempt, record.run_id) == (1, "run")

    standings = await session(paths, 1, work)
    assert [record.attempt for record in standings.records_of(RolloutKey(0, 0))] == [0, 1]


async def test_the_fold_of_a_session_is_the_one_that_its_files_give(paths):
    async def work(ledger):
        first, second, third, fourth = [await ledger.reserve(rollout(task)) for task in range(4)]
        await ledger.write(first, SCORED)
        await ledger.write(second, FAILED)
        await ledger.refused(third, "503")
        await ledger.cut([fourth], "SIGTERM")
        await ledger.stopped("SIGTERM")
        await ledger.write(rollout(4), Ending(NeverStarted("SIGTERM")))

    left = await session(paths, 1, work)
    read = read_history(paths).standings

    def told(standings: Standings) -> list:
        keys = [RolloutKey(task, 0) for task in range(4)]
        return [
            (
                standings.standing(key).disposition,
                standings.next_attempt(key),
                standings.spent(key),
                standings.lost(key),
            )
            for key in keys
        ]

    assert told(left) == told(read)
    assert [disposition for disposition, *_ in told(read)] == [
        Disposition.SCORED,
        Disposition.RETRYABLE,
        Disposition.NEVER_STARTED,
        Disposition.INTERRUPTED,
    ]


async def test_a_session_that_can_no_longer_write_ends_with_what_kept_it_from_writing(paths, monkeypatch):
    def full(_descriptor):
        raise OSError(28, "No space left on device")

    async def work(ledger):
        monkeypatch.setattr(writing, "DATA_SYNC", full)
        await ledger.reserve(rollout(0))

    with pytest.raises(LedgerError, match="No space left"):
        await session(paths, 1, work)
    assert not any(isinstance(event, Closed) for event in events(paths))


async def test_an_ending_that_did_not_reach_the_disk_counts_for_nothing(paths, monkeypatch):
    left = []

    def full(_descriptor):
        raise OSError(28, "No space left on device")

    async def work(ledger):
        attempt = await ledger.reserve(rollout(0))
        monkeypatch.setattr(writing, "DATA_SYNC", full)
        with pytest.raises(LedgerError, match="No space left"):
            await ledger.write(attempt, SCORED)
        left.append(ledger._standings.standing(attempt.key, Rules(live_session=1)).disposition)

    with pytest.raises(LedgerError, match="No space left"):
        await session(paths, 1, work)
    assert left == [Disposition.IN_FLIGHT]
