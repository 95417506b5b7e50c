"""Files of a run that somebody moved or replaced while it writes: it stops, and says how to go on."""

import pytest

from rollbook.clock import SystemClock
from rollbook.errors import LedgerError
from rollbook.ledger import writer as writing
from rollbook.ledger.paths import RunPaths
from rollbook.ledger.writer import Writer
from rollbook.records.codec import RunStamp
from rollbook.records.ending import Ending
from rollbook.records.identity import RolloutKey
from rollbook.records.outcome import Scored
from rollbook.records.task import Rollout

SCORED = Ending(Scored(1.0), {"reward": 1})
ROLLOUT = Rollout(RolloutKey(0, 0), b"{}", "env", "a", stamped=b'"_ng_task_index":0,"_ng_rollout_index":0')


@pytest.fixture
def paths(tmp_path):
    return RunPaths(tmp_path / "out" / "r.jsonl")


def writer(paths):
    return Writer(paths, RunStamp("run", cap=3), SystemClock())


async def test_a_file_that_is_replaced_just_after_it_was_opened_is_not_taken_for_the_one_that_is_written(
    paths, monkeypatch
):
    append_to = writing.append_to

    def replaced(path):
        opened = append_to(path)
        path.rename(path.with_suffix(".moved"))
        path.touch()
        return opened

    monkeypatch.setattr(writing, "append_to", replaced)
    async with writer(paths) as opened:
        with pytest.raises(LedgerError, match="was moved, removed or replaced while this run wrote to it"):
            await opened.write(ROLLOUT, SCORED)


async def test_a_file_in_place_of_the_folder_is_told_of_as_what_it_is(paths):
    folder = paths.output.parent
    async with writer(paths) as opened:
        folder.rename(folder.with_name("elsewhere"))
        folder.touch()
        with pytest.raises(LedgerError, match=r"was moved, removed or replaced .* Put it back and start the run again"):
            await opened.write(ROLLOUT, SCORED)
