"""One commit of the writer: however many pieces it has, all of them are on the disk."""

import asyncio

import pytest

from rollbook.clock import SystemClock
from rollbook.ledger import writer as writing
from rollbook.ledger.paths import RunPaths
from rollbook.ledger.reader import read_lines
from rollbook.ledger.writer import Writer
from rollbook.records.codec import RunStamp
from rollbook.records.ending import Ending
from rollbook.records.identity import RolloutKey
from rollbook.records.outcome import Scored
from rollbook.records.task import Rollout

SCORED = Ending(Scored(1.0), {"reward": 1})


def rollout(task):
    return Rollout(RolloutKey(task, 0), b"{}", "env", "a", stamped=b'"_ng_task_index":%d,"_ng_rollout_index":0' % task)


@pytest.mark.parametrize("count", range(1, 14))
async def test_every_piece_of_a_commit_is_written(tmp_path, monkeypatch, count):
    monkeypatch.setattr(writing, "_AT_ONCE", 4)
    paths = RunPaths(tmp_path / "r.jsonl")
    async with Writer(paths, RunStamp("run", cap=3), SystemClock()) as writer:
        await asyncio.gather(*[_awaited(writer.write(rollout(task), SCORED)) for task in range(count)])
    assert len(list(read_lines(paths.output))) == count


async def _awaited(handed):
    await handed


async def test_names_of_new_files_are_on_the_disk_before_anything_is_handed_out(tmp_path, monkeypatch):
    folders = []
    monkeypatch.setattr(writing, "sync_folder", lambda folder: folders.append(sorted(p.name for p in folder.iterdir())))
    paths = RunPaths(tmp_path / "r.jsonl")
    async with Writer(paths, RunStamp("run", cap=3), SystemClock()):
        assert folders == [sorted(path.name for path in (paths.output, paths.failures, paths.manifest_log))]
