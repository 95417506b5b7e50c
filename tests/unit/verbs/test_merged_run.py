import json
import os
import signal
import sys

import pytest
from msgspec.structs import replace

from rollbook.errors import InputError
from rollbook.ledger.digests import sha256_of
from rollbook.ledger.manifest_store import write_manifest
from rollbook.ledger.paths import RunPaths
from rollbook.records.disposition import Disposition
from rollbook.records.identity import RolloutKey
from rollbook.records.run_status import RunState
from rollbook.scoring.imputation import NOTHING_COUNTED
from rollbook.verbs.aggregate_shards import Aggregation, read_shards
from rollbook.verbs.merged_run import is_merged, without_merged
from rollbook.verbs.shard_files import refuse_over_run
from rollbook.verbs.status import read_run, run_status
from saved_run import SavedRun, append, planned

NOW = "2026-11-30T00:00:00.000Z"


def task(number, *repeats, **fields):
    return [planned(number, repeat, question=f"q{number}", **fields) for repeat in repeats]


def shard(folder, name, rollouts):
    """Return a run of its own name, whose rows name it."""
    run = SavedRun(folder / name, rollouts, run_id=name)
    digest = replace(run.manifest.plan, sha256=sha256_of(run.paths.materialized_inputs))
    write_manifest(run.paths.manifest, replace(run.manifest, plan=digest))
    return run


def merged(folder, *outputs):
    paths = RunPaths(folder / "merged" / "all.jsonl")
    read = read_shards(outputs)
    with Aggregation(read.shards, NOTHING_COUNTED) as found:
        return paths, found.write_merged(paths, NOW)


@pytest.fixture
def shards(tmp_path):
    """Two parts of one dataset: a failure, a rollout that was interrupted, and two of which nothing is known."""
    first = shard(tmp_path, "s1", [*task(0, 0, 1), *task(2, 0, 1)])
    first.ran(0, 0, _ng_run_id="s1").ran(0, 1, _ng_run_id="s1", reward=0.0).failed(2, 0, _ng_run_id="s1")
    first.failed(2, 0, attempt=1, _ng_run_id="s1")
    second = shard(tmp_path, "s2", [*task(1, 0, 1), *task(3, 0)])
    second.failed(1, 0, _ng_run_id="s2").ran(1, 0, attempt=1, _ng_run_id="s2").reserves((1, 1, 0))
    return first.output, second.output


def rows_of(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def keys_of(path):
    return [(row["_ng_task_index"], row["_ng_rollout_index"]) for row in rows_of(path)]


def test_merged_shards_are_one_run_with_the_plan_of_all_of_them(tmp_path, shards):
    paths, made = merged(tmp_path, *shards)
    assert (made.rows, made.is_run, made.notes) == (3, True, ())
    assert keys_of(paths.output) == [(0, 0), (0, 1), (1, 0)]
    assert keys_of(paths.materialized_inputs) == [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 1), (3, 0)]
    assert keys_of(paths.failures) == [(2, 0), (2, 0)]
    assert is_merged(paths)


def test_a_merged_run_counts_what_its_shards_counted(tmp_path, shards):
    alone = [run_status(output).coverage for output in shards]
    paths, _ = merged(tmp_path, *shards)
    status = run_status(paths.output)
    assert status.coverage.planned == sum(one.planned for one in alone)
    assert status.coverage.law_holds
    standings = read_run(paths.output).history.standings
    rules = read_run(paths.output).rules
    stands = {str(one.key): one.disposition for one in standings.standings(rules)}
    assert stands["1-1"] is Disposition.INTERRUPTED
    assert stands["2-1"] is Disposition.UNTOUCHED
    assert standings.spent(RolloutKey(2, 0)) == 2


def test_why_rollouts_were_never_started_is_kept_where_all_shards_that_have_such_say_it(tmp_path):
    first, second = (shard(tmp_path, f"s{number}", task(number, 0, 1)) for number in (0, 1))
    first.ran(0, 0, _ng_run_id="s0").log(t="stop", why="the budget is spent")
    second.ran(1, 0, _ng_run_id="s1").ran(1, 1, _ng_run_id="s1")
    paths, _ = merged(tmp_path, first.output, second.output)
    assert read_run(paths.output).history.standings.stop_reason == "the budget is spent"
    assert run_status(paths.output).coverage.never_started == 1


def test_of_a_shard_that_was_not_stopped_nothing_is_said_to_be_never_started(tmp_path):
    first, second = (shard(tmp_path, f"s{number}", task(number, 0, 1)) for number in (0, 1))
    first.ran(0, 0, _ng_run_id="s0").log(t="stop", why="the budget is spent")
    second.ran(1, 0, _ng_run_id="s1")
    paths, _ = merged(tmp_path, first.output, second.output)
    coverage = run_status(paths.output).coverage
    assert (coverage.never_started, coverage.untouched) == (0, 2)


def test_a_merged_run_is_not_damaged_though_its_records_name_several_runs(tmp_path, shards):
    paths, _ = merged(tmp_path, *shards)
    status = run_status(paths.output)
    assert (status.damage, status.state) == ((), RunState.FINISHED)


def test_merging_what_was_merged_gives_the_same_files(tmp_path, shards):
    paths, _ = merged(tmp_path, *shards)
    again, made = merged(tmp_path / "again", paths.output)
    assert made.is_run
    for name in ("output", "failures", "materialized_inputs"):
        assert getattr(again, name).read_bytes() == getattr(paths, name).read_bytes()


def test_what_was_merged_may_be_written_anew_and_a_run_may_not(tmp_path, shards):
    paths, _ = merged(tmp_path, *shards)
    refuse_over_run(paths.output)
    with pytest.raises(InputError, match="a run has its results there"):
        refuse_over_run(shards[0])


def test_of_a_rollout_on_which_two_shards_failed_the_later_one_speaks(tmp_path):
    first, second = (shard(tmp_path, name, task(0, 0)) for name in ("s1", "s2"))
    first.failed(0, 0, _ng_run_id="s1", _ng_failure_message="one").failed(0, 0, attempt=1, _ng_run_id="s1")
    second.failed(0, 0, _ng_run_id="s2", _ng_failure_message="two")
    paths, _ = merged(tmp_path, first.output, second.output)
    assert [row["_ng_failure_message"] for row in rows_of(paths.failures)] == ["two"]


def test_a_result_in_one_shard_leaves_out_failures_of_another(tmp_path):
    first, second = (shard(tmp_path, name, task(0, 0)) for name in ("s1", "s2"))
    first.failed(0, 0, _ng_run_id="s1")
    second.ran(0, 0, _ng_run_id="s2")
    for outputs in ((first.output, second.output), (second.output, first.output)):
        paths, _ = merged(tmp_path, *outputs)
        assert keys_of(paths.failures) == []
        assert run_status(paths.output).coverage.scored == 1


def test_the_plan_is_the_one_of_the_shard_whose_result_stands(tmp_path):
    first, second = (shard(tmp_path, name, task(0, 0, said=name)) for name in ("s1", "s2"))
    first.failed(0, 0, _ng_run_id="s1")
    second.ran(0, 0, _ng_run_id="s2")
    paths, _ = merged(tmp_path, first.output, second.output)
    assert [row["said"] for row in rows_of(paths.materialized_inputs)] == ["s2"]


def test_a_plan_in_another_order_is_merged_by_task_and_repeat(tmp_path):
    run = shard(tmp_path, "s1", [planned(1, 0), planned(0, 0), planned(1, 1), planned(0, 1)])
    run.ran(1, 1, _ng_run_id="s1").ran(0, 0, _ng_run_id="s1")
    paths, _ = merged(tmp_path, run.output)
    assert keys_of(paths.materialized_inputs) == [(0, 0), (0, 1), (1, 0), (1, 1)]


def test_rows_of_servers_that_number_their_tasks_alike_are_no_run_and_it_is_said_why(tmp_path, shards):
    paths, _ = merged(tmp_path, *shards)
    first, second = (
        shard(tmp_path, name, task(0, 0, _ng_environment_server=server)) for name, server in (("a", "e1"), ("b", "e2"))
    )
    for run, name, server in ((first, "a", "e1"), (second, "b", "e2")):
        run.ran(0, 0, _ng_run_id=name, _ng_environment_server=server)
    paths, made = merged(tmp_path, first.output, second.output)
    assert (made.rows, made.is_run) == (2, False)
    assert "number their tasks alike" in made.notes[0]
    assert [path.name for path in paths.existing()] == ["all.jsonl"]


def test_results_in_no_plan_are_merged_without_one_and_it_is_said(tmp_path, shards):
    alone = tmp_path / "alone.jsonl"
    append(alone, planned(7, 0, reward=1.0))
    paths, made = merged(tmp_path, *shards, alone)
    assert (made.rows, made.is_run) == (4, False)
    assert "--materialized-inputs" in made.notes[0]
    assert not paths.manifest.exists()


def test_rows_of_damaged_shards_are_no_run(tmp_path, shards):
    paths, _ = merged(tmp_path, *shards)
    append(shards[0], {"no": "rollout"})
    paths, made = merged(tmp_path, *shards)
    assert (made.rows, made.is_run) == (3, False)
    assert "damaged" in made.notes[0]
    assert not paths.manifest.exists()


def test_what_was_merged_of_shards_is_no_further_shard_beside_them(tmp_path, shards):
    paths, _ = merged(tmp_path, *shards)
    outputs, notes = without_merged([*shards, paths.output])
    assert outputs == shards
    assert "all.jsonl was merged of" in notes[0]
    assert without_merged([paths.output]) == ((paths.output,), ())


def merged_until(folder, outputs, renames):
    """Merge in a process that is killed as it is about to put one more file in place; return whether it was."""
    pid = os.fork()
    if pid:
        _, status = os.waitpid(pid, 0)
        return os.WIFSIGNALED(status)
    done = 0

    def counted(event, _arguments):
        nonlocal done
        done += event == "os.rename"
        if event == "os.rename" and done > renames:
            os.kill(os.getpid(), signal.SIGKILL)

    code = 1
    try:
        sys.addaudithook(counted)
        merged(folder, *outputs)
        code = 0
    finally:
        os._exit(code)


def files_of(folder):
    return {path.name: path.read_bytes() for path in (folder / "merged").iterdir() if not path.name.startswith(".")}


def test_a_merge_that_is_killed_leaves_whole_files_or_none_and_the_next_one_completes_it(tmp_path, shards):
    merged(tmp_path / "whole", *shards)
    whole, renames = files_of(tmp_path / "whole"), 0
    while merged_until(tmp_path / f"killed-{renames}", shards, renames):
        killed = tmp_path / f"killed-{renames}"
        assert files_of(killed).items() <= whole.items()
        paths, _ = merged(killed, *shards)
        assert {name: files_of(killed)[name] for name in whole} == whole
        assert is_merged(paths)
        renames += 1
    assert renames >= len(whole) - 1
