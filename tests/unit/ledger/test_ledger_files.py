import asyncio
import os

import msgspec
import pytest

from rollbook.errors import InputError, LedgerError, OutputExistsError, ServingError
from rollbook.ledger.paths import RunPaths
from rollbook.ledger.reader import read_lines, read_records
from rollbook.ledger.run import Run, files_of
from rollbook.ledger.tail import repair_tail
from rollbook.ledger.whole_file import whole_file
from rollbook.ledger.writer import Durability, Writer
from rollbook.records.ending import Ending
from rollbook.records.identity import RolloutKey
from rollbook.records.outcome import Failed, Interrupted, NeverStarted, Scored
from rollbook.records.task import Rollout


def rollout(task, attempt=0):
    stamps = {"_ng_task_index": task, "_ng_rollout_index": 0, "agent_ref": {"name": "a"}}
    return Rollout(RolloutKey(task, 0), b"{}", "env", "a", attempt, stamps=stamps)


@pytest.fixture
def paths(tmp_path):
    return RunPaths(tmp_path / "out" / "r.jsonl")


async def test_every_ending_is_one_line_in_its_file_in_order(paths):
    async with Writer(paths) as writer:
        await asyncio.gather(*(writer.write(rollout(n), Ending(Scored(1.0), {"reward": 1, "n": n})) for n in range(50)))
        await writer.write(rollout(50), Ending(Failed("agent_run_error", "m")))
    rows = [msgspec.json.decode(line) for _, line in read_lines(paths.output)]
    assert sorted(row["n"] for row in rows) == list(range(50))
    assert len(list(read_lines(paths.failures))) == 1
    assert sum(1 for _ in read_records(paths)) == 51


async def test_a_default_run_leaves_an_empty_failures_file(paths):
    async with Writer(paths):
        pass
    assert paths.failures.read_bytes() == b""


@pytest.mark.parametrize("outcome", [Interrupted("kill_shaped"), NeverStarted("why")])
@pytest.mark.parametrize("recorded", [True, False])
async def test_an_omitted_rollout_leaves_a_row_only_on_request(paths, outcome, recorded):
    async with Writer(paths, record_omitted=recorded) as writer:
        record = await writer.write(rollout(0), Ending(outcome))
    assert record.outcome == outcome
    assert len(list(read_lines(paths.failures))) == int(recorded)


async def test_a_row_that_is_no_json_becomes_a_failure_that_keeps_evidence(paths):
    async with Writer(paths) as writer:
        record = await writer.write(rollout(0), Ending(Scored(1.0), {"reward": 1, "bad": object()}))
        await writer.write(rollout(1), Ending(Scored(1.0), {"reward": 1}))
    assert isinstance(record.outcome, Failed)
    assert record.outcome.kind == "persistence_failed"
    saved = [msgspec.json.decode(line) for _, line in read_lines(paths.failures)]
    assert "bad" in saved[0]["_ng_failure_evidence"]
    assert len(list(read_lines(paths.output))) == 1


async def test_a_disk_that_fails_stops_the_writer_and_keeps_what_was_acknowledged(paths, monkeypatch):
    async with Writer(paths, durability=Durability.SYNC) as writer:
        await writer.write(rollout(0), Ending(Scored(1.0), {"reward": 1}))

        def full(_descriptor):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(os, "fdatasync", full)
        with pytest.raises(LedgerError, match="No space left"):
            await writer.write(rollout(1), Ending(Scored(1.0), {"reward": 1}))
        monkeypatch.undo()
        with pytest.raises(LedgerError, match="--resume"):
            await writer.write(rollout(2), Ending(Scored(1.0), {"reward": 1}))
    assert next(read_lines(paths.output))[0] == 1


async def test_a_cancelled_caller_does_not_lose_its_line(paths):
    async with Writer(paths) as writer:
        task = asyncio.create_task(writer.write(rollout(0), Ending(Scored(1.0), {"reward": 1})))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await writer.write(rollout(1), Ending(Scored(1.0), {"reward": 1}))
    assert len(list(read_lines(paths.output))) == 2


@pytest.mark.parametrize(
    ("before", "after", "torn"),
    [
        (b'{"a":1}\n{"b":2', b'{"a":1}\n', b'{"b":2\n'),
        (b'{"a":1}\n{"b":2}', b'{"a":1}\n{"b":2}\n', None),
        (b'{"a":1}\n', b'{"a":1}\n', None),
        (b"", b"", None),
        (b'{"a"', b"", b'{"a"\n'),
        ('{"a":1}\n{"t":"判'.encode()[:-1], b'{"a":1}\n', '{"t":"判'.encode()[:-1] + b"\n"),
        (b'{"a":1}\n[1', b'{"a":1}\n', b"[1\n"),
    ],
)
def test_only_an_unterminated_tail_is_repaired_and_nothing_cut_is_lost(tmp_path, before, after, torn):
    path = tmp_path / "r.jsonl"
    path.write_bytes(before)
    repair_tail(path)
    assert path.read_bytes() == after
    kept = tmp_path / "r.jsonl.torn"
    assert (kept.read_bytes() if kept.exists() else None) == torn


def test_a_tail_longer_than_a_chunk_is_found(tmp_path):
    path = tmp_path / "r.jsonl"
    path.write_bytes(b'{"a":1}\n{"b":"' + b"x" * (3 << 20))
    assert repair_tail(path).cut == len('{"b":"') + (3 << 20)
    assert path.read_bytes() == b'{"a":1}\n'


def test_an_unterminated_line_is_no_record(tmp_path):
    path = tmp_path / "r.jsonl"
    path.write_bytes(b'{"a":1}\n \n{"b":2}')
    assert list(read_lines(path)) == [(1, b'{"a":1}')]


def test_a_committed_line_that_is_no_record_is_named(paths):
    paths.output.parent.mkdir(parents=True)
    paths.output.write_bytes(b'{"_ng_task_index":0,"_ng_rollout_index":0}\n{"reward":1}\n')
    with pytest.raises(LedgerError, match=r"r\.jsonl:2: not a rollout record"):
        list(read_records(paths))


def test_a_file_appears_whole_or_not_at_all(tmp_path):
    path = tmp_path / "x.json"
    path.write_text("old")
    with pytest.raises(TypeError), whole_file(path) as file:
        file.write("no bytes")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]
    with whole_file(path) as file:
        file.write(b"new")
    assert path.read_text() == "new"


def test_an_output_that_is_there_is_refused_and_both_ways_out_are_named(paths):
    run = Run(paths)
    run.refuse_existing()
    paths.output.parent.mkdir(parents=True)
    paths.failures.write_text("{}\n")
    with pytest.raises(OutputExistsError, match=r"r_materialized_inputs.jsonl is missing.*--overwrite"):
        run.refuse_existing()
    paths.materialized_inputs.write_text("{}\n")
    with pytest.raises(OutputExistsError, match=r"r_failures.jsonl exists.*--resume.*--overwrite"):
        run.refuse_existing()


def test_a_plan_that_fails_leaves_the_earlier_run_as_it_was(paths):
    run = Run(paths)
    paths.output.parent.mkdir(parents=True)
    for path in (paths.output, paths.failures, paths.materialized_inputs):
        path.write_text("old\n")

    def rows():
        yield {"a": 1}
        raise InputError("bad row")

    with pytest.raises(InputError, match="bad row"), run.drafted(rows()):
        pass
    with pytest.raises(ServingError), run.drafted([{"a": 1}]):
        raise ServingError("no server came up")
    assert all(path.read_text() == "old\n" for path in (paths.output, paths.failures, paths.materialized_inputs))
    with run.drafted([{"a": 1}]) as draft:
        assert paths.output.read_text() == "old\n"
        draft.commit()
    assert draft.rollouts == 1
    assert files_of(paths) == {"materialized inputs": paths.materialized_inputs}
    assert list(run.planned_lines()) == [b'{"a":1}']
    assert sorted(path.name for path in paths.output.parent.iterdir()) == ["r_materialized_inputs.jsonl"]


def test_a_disk_that_is_full_when_a_plan_is_put_in_force_leaves_the_earlier_run(paths, monkeypatch):
    run = Run(paths)
    paths.output.parent.mkdir(parents=True)
    for path in (paths.output, paths.failures, paths.aggregate_metrics, paths.materialized_inputs):
        path.write_text("old\n")

    def full(_descriptor):
        raise OSError(28, "No space left on device")

    with run.drafted([{"a": 1}]) as draft:
        monkeypatch.setattr(os, "fsync", full)
        with pytest.raises(LedgerError, match="No space left"):
            draft.commit()
    files = (paths.output, paths.failures, paths.aggregate_metrics, paths.materialized_inputs)
    assert all(path.read_text() == "old\n" for path in files)
    assert len(list(paths.output.parent.iterdir())) == 4


async def test_whatever_breaks_the_disk_nobody_waits_for_ever(paths, monkeypatch):
    async with Writer(paths) as writer:

        def broken(_self, _lines):
            raise ValueError("write to closed file")

        monkeypatch.setattr(Writer, "_commit", broken)
        writes = (writer.write(rollout(n), Ending(Scored(1.0), {"reward": 1})) for n in range(3))
        found = await asyncio.wait_for(asyncio.gather(*writes, return_exceptions=True), 5)
    assert all(isinstance(error, LedgerError) for error in found)


async def test_closing_waits_for_lines_through_cancellation(paths):
    async def session():
        async with Writer(paths) as writer:
            pending.append(asyncio.create_task(writer.write(rollout(0), Ending(Scored(1.0), {"reward": 1}))))
            begun.set()
            await asyncio.sleep(0)

    pending, begun = [], asyncio.Event()
    task = asyncio.create_task(session())
    await begun.wait()
    task.cancel()
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, *pending, return_exceptions=True)
    assert len(list(read_lines(paths.output))) == 1


@pytest.mark.parametrize("prepared", ["folder", "parent is a file"])
def test_an_output_that_cannot_be_written_is_named_before_anything_is_done(tmp_path, prepared):
    output = tmp_path / "out" / "r.jsonl"
    if prepared == "folder":
        output.mkdir(parents=True)
    else:
        output.parent.write_text("a file")
    with pytest.raises(LedgerError, match=r"out.*(give a file name|--output)"), Run(RunPaths(output)).claimed():
        pass


def test_what_is_no_regular_file_is_never_replaced(paths):
    paths.output.parent.mkdir(parents=True)
    os.mkfifo(paths.failures)
    with pytest.raises(LedgerError, match=r"r_failures\.jsonl is no regular file"), Run(paths).claimed():
        pass
    assert paths.failures.is_fifo()


def test_a_run_that_comes_to_nothing_leaves_no_trace(tmp_path):
    paths = RunPaths(tmp_path / "a" / "b" / "r.jsonl")
    with pytest.raises(InputError), Run(paths).claimed():
        raise InputError("no rows")
    assert list(tmp_path.iterdir()) == []


def test_one_writer_at_a_time(paths):
    with Run(paths).claimed(), pytest.raises(LedgerError, match="another process is writing"), Run(paths).claimed():
        pass
