"""A shard that cannot be written, or no longer: nothing more is paid for, and the trainer is told what to do."""

import asyncio
import errno
import os
import shlex
import threading

import pytest

from rollbook.errors import LedgerError, ShardTakenOverError
from rollbook.ledger.shard import ShardWriter
from run_folder import identities, said
from stub import adding, lines, serving
from unit.api.shard_calls import ShardFolder, planned

ONE_AT_A_TIME = [lambda: {"max_resident_tasks": 1}, lambda: {"semaphore": asyncio.Semaphore(1)}]


@pytest.fixture
def shard(tmp_path):
    return ShardFolder(tmp_path / "run")


@pytest.fixture
def full(monkeypatch):
    """Return a function from which on the disk takes no more."""

    def refused(_file, _pieces):
        raise OSError(errno.ENOSPC, "No space left on device")

    return lambda: monkeypatch.setattr(os, "writev", refused)


class Held:
    """Answers the second rollout once nothing can be written, and the others once a write is known to have failed."""

    def __init__(self):
        self.refusing, self.known = threading.Event(), threading.Event()

    async def __call__(self, row):
        if row["_ng_task_index"] and not row.get("_ng_attempt_index"):
            await asyncio.to_thread((self.refusing if row["_ng_task_index"] == 1 else self.known).wait, 60)

    async def errors_of(self, results):
        """Await all that is left, and return what was raised."""
        errors = []
        for awaitable in results:
            try:
                await awaitable
            except LedgerError as error:
                errors.append(error)
                self.known.set()
        return errors


async def one_of(results):
    await next(results)
    await results.aclose()


@pytest.mark.parametrize("options", ONE_AT_A_TIME, ids=["resident", "semaphore"])
async def test_nothing_more_is_sent_once_somebody_else_opened_the_label(shard, options):
    held = Held()
    with serving(held) as stub:
        results = shard.call(stub, planned(6), **options())
        await next(results)
        shard.opened(planned(1), "two")
        held.refusing.set()
        errors = await held.errors_of(results)
        assert len(stub.requests) <= 3
    assert len(errors) == 5
    assert {type(error) for error in errors} == {ShardTakenOverError}


async def test_a_file_that_is_replaced_is_told_of_with_the_command_that_goes_on_with_the_shard(shard):
    held = Held()
    with serving(held) as stub:
        results = shard.call(stub, planned(6), max_resident_tasks=1)
        await next(results)
        shard.paths.output.rename(shard.paths.output.with_suffix(".moved"))
        shard.paths.output.touch()
        held.refusing.set()
        (told,) = {str(error) for error in await held.errors_of(results)}
        assert len(stub.requests) <= 3
    assert f"{shard.paths.output} was moved, removed or replaced" in told
    assert "Put it back and resume the shard: gym eval run --no-serve --resume" in told


@pytest.mark.parametrize("options", ONE_AT_A_TIME, ids=["resident", "semaphore"])
def test_nothing_more_is_sent_once_the_disk_is_full_and_what_is_told_to_type_goes_on(shard, full, monkeypatch, options):
    async def filled(stub):
        results = shard.call(stub, planned(6), **options())
        await next(results)
        full()
        held.refusing.set()
        return await held.errors_of(results)

    held = Held()
    with serving(held) as stub:
        errors = asyncio.run(filled(stub))
        sent = len(stub.requests)
        monkeypatch.undo()
        assert sent <= 3
        (told,) = {str(error) for error in errors}
        assert "No space left on device" in told
        kept = identities(shard.paths.output)
        command = told.partition("gym ")[2].partition("; ")[0]
        answer = said([*shlex.split(command), *stub.overrides])
        assert answer.code == 0, answer.text
        assert len(stub.requests) - sent == 6 - len(kept)
    assert sorted(row[0] for row in identities(shard.paths.output)) == [*range(6)]


async def test_nothing_is_sent_where_the_files_cannot_be_opened(shard):
    with serving() as stub:
        results = shard.call(stub, planned(3), max_resident_tasks=1)
        for path in (shard.paths.output, shard.paths.failures):
            path.unlink(missing_ok=True)
            path.mkdir()
        errors = await Held().errors_of(results)
        await results.aclose()
        assert stub.requests == []
    assert len(errors) == 3
    assert {"record_output_dir" in str(error) and "rollouts-s1" in str(error) for error in errors} == {True}


async def test_a_call_that_is_closed_while_its_files_are_opened_opens_them_once(shard, monkeypatch):
    def held_open(self):
        opened.append(self)
        began.set()
        goes_on.wait(60)
        opening(self)

    opened, began, goes_on, opening = [], threading.Event(), threading.Event(), ShardWriter._open
    monkeypatch.setattr(ShardWriter, "_open", held_open)
    with serving() as stub:
        results = shard.call(stub, planned(2), max_resident_tasks=1)
        waiting = asyncio.ensure_future(next(results))
        await asyncio.to_thread(began.wait)
        closing = asyncio.create_task(results.aclose())
        for _ in range(10):
            await asyncio.sleep(0)
        goes_on.set()
        await closing
        await asyncio.gather(waiting, return_exceptions=True)
        assert (len(opened), stub.requests) == (1, [])


def refused(shard):
    with serving() as stub, pytest.raises(LedgerError) as raised:
        shard.call(stub, planned(1))
    assert "--output" not in str(raised.value)
    return str(raised.value)


def test_a_disk_that_is_full_before_the_first_row_names_the_argument(shard, monkeypatch):
    def no_space(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("rollbook.ledger.digests.HashedFile.write", no_space)
    assert "Free the disk, or give another record_output_dir that can be written" in refused(shard)


def test_a_folder_that_is_a_file_names_the_argument(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    told = refused(ShardFolder(tmp_path / "file"))
    assert "is a file, and can hold no other; give another record_output_dir" in told


def test_a_file_of_the_shard_that_is_a_folder_names_the_argument(shard):
    shard.paths.failures.mkdir(parents=True)
    assert "is no regular file and is left as it is; give another record_output_dir" in refused(shard)


def test_a_shard_whose_files_are_those_of_a_run_asks_for_another_label(shard, tmp_path):
    (tmp_path / "in.jsonl").write_bytes(lines(adding(1)))
    shard.folder.mkdir()
    output = shard.paths.output.with_suffix(".txt")
    with serving() as stub:
        command = ["eval", "run", "--no-serve", "-i", str(tmp_path / "in.jsonl"), "-o", str(output), *stub.overrides]
        answer = said(command)
        assert answer.code == 0, answer.text
    assert "rollouts-s1.txt; give another record_shard" in refused(shard)


def test_a_shard_that_lost_its_manifest_is_damaged_and_is_gone_on_with_by_what_the_refusal_says(shard):
    with serving() as stub:
        asyncio.run(one_of(shard.call(stub, planned(3), max_resident_tasks=1)))
        shard.paths.manifest.unlink()
        plan = shard.paths.materialized_inputs.read_bytes()
        answer = shard.resumed(stub)
        assert (answer.code, len(stub.requests)) == (5, 1)
        assert "the manifest is gone" in answer.text
        assert "+allow_unsafe_resume=true" in answer.text
        assert shard.resumed(stub, "+allow_unsafe_resume=true").code == 0
    assert sorted(row[0] for row in identities(shard.paths.output)) == [0, 1, 2]
    assert shard.paths.materialized_inputs.read_bytes() == plan


def test_a_trainer_that_resumes_a_shard_of_a_call_it_did_not_close_is_told_to_close_it(shard):
    with serving() as stub:
        results = shard.call(stub, planned(2), max_resident_tasks=1)
        told = shard.resumed(stub).text
        assert f"pid {os.getpid()} on " in told
        assert "it is this process: close the call that records it with aclose()" in told
        asyncio.run(results.aclose())
        assert shard.resumed(stub).code == 0
