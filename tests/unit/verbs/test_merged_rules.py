"""A run that was merged of others: which failures speak, which numbers were handed out, and which rules hold."""

import pytest
from msgspec.structs import replace

from rollbook.ledger.digests import sha256_of
from rollbook.ledger.manifest_store import read_log, read_manifest, write_manifest
from rollbook.ledger.paths import RunPaths
from rollbook.ledger.whole_file import WholeFile
from rollbook.records.manifest import Reserved
from rollbook.records.run_status import RunState
from rollbook.scoring.imputation import NOTHING_COUNTED
from rollbook.verbs import status
from rollbook.verbs.aggregate_shards import Aggregation, read_shards
from rollbook.verbs.merged_run import without_merged
from rollbook.verbs.status import run_status
from saved_run import SavedRun, killed, planned


def shard(folder, name, *tasks, **settings):
    """Return a run of its own name, whose rows name it."""
    run = SavedRun(folder / name, [planned(task, 0) for task in tasks], run_id=name, **settings)
    digest = replace(run.manifest.plan, sha256=sha256_of(run.paths.materialized_inputs))
    write_manifest(run.paths.manifest, replace(run.manifest, plan=digest))
    return run


def merged(folder, *runs):
    paths = RunPaths(folder / "merged" / "all.jsonl")
    with Aggregation(read_shards([run.output for run in runs]).shards, NOTHING_COUNTED) as found:
        assert found.write_merged(paths, "2026-11-30T00:00:00.000Z").is_run
    return paths


def reserved(paths):
    return [number for _, event in read_log(paths.manifest_log) if isinstance(event, Reserved) for number in event.a]


@pytest.mark.parametrize("order", [1, -1])
def test_a_failure_in_one_shard_speaks_before_an_interruption_in_another(tmp_path, order):
    failed = shard(tmp_path, "s1", 0).failed(0, 0, _ng_run_id="s1")
    cut = shard(tmp_path, "s2", 0).failed(0, 0, _ng_run_id="s2", **killed())
    paths = merged(tmp_path, *[failed, cut][::order])
    coverage = run_status(paths.output).coverage
    assert (coverage.failed, coverage.interrupted) == (1, 0)


def test_a_row_that_was_never_started_takes_no_number(tmp_path):
    drained = {"_ng_omitted_rollout": True, "_ng_no_persist": True, "_ng_dispatch_drained": True}
    one = shard(tmp_path, "s1", 0, 1).ran(0, 0, _ng_run_id="s1")
    one.failure(1, 0, _ng_run_id="s1", _ng_failure_class="cancelled", **drained)
    paths = merged(tmp_path, one, shard(tmp_path, "s2", 2).ran(2, 0, _ng_run_id="s2"))
    assert reserved(paths) == [0, 0, 0, 2, 0, 0]
    assert run_status(paths.output).attempts == 2


def test_the_largest_cap_holds_and_repeats_are_scored_together_where_all_shards_say_so(tmp_path):
    one = shard(tmp_path, "s1", 0, max_rollout_attempts=2, group_scored=True).ran(0, 0, _ng_run_id="s1")
    two = shard(tmp_path, "s2", 1, max_rollout_attempts=5).ran(1, 0, _ng_run_id="s2")
    manifest = read_manifest(merged(tmp_path, one, two).manifest)
    assert (manifest.max_rollout_attempts, manifest.group_scored) == (5, False)


def test_a_merged_run_of_other_runs_of_the_same_name_is_no_copy_of_those_that_are_named(tmp_path):
    was = shard(tmp_path, "s1", 0).ran(0, 0, _ng_run_id="s1")
    paths = merged(tmp_path, was)
    other = shard(tmp_path / "other", "s2", 0).ran(0, 0, _ng_run_id="s2")
    assert other.output.name == was.output.name
    assert without_merged([paths.output, other.output]) == ((paths.output, other.output), ())
    assert without_merged([paths.output, was.output])[0] == (was.output,)


def test_the_manifest_is_in_place_before_any_other_file_of_what_was_merged(tmp_path, monkeypatch):
    one = shard(tmp_path, "s1", 0).ran(0, 0, _ng_run_id="s1")
    placed, place = [], WholeFile.place
    monkeypatch.setattr(WholeFile, "place", lambda file: (placed.append(file._path.name), place(file)))
    paths = merged(tmp_path, one)
    assert placed[0] == paths.manifest.name
    assert len(placed) == 5


def test_a_status_counts_the_failures_that_a_decision_added_to_the_cap(tmp_path):
    run = shard(tmp_path, "s1", 0, max_rollout_attempts=1, attempt_extension=1).failed(0, 0, _ng_run_id="s1")
    told = run_status(run.output)
    assert (told.cap, told.coverage.retryable, told.coverage.exhausted) == (2, 1, 0)
    assert told.state is RunState.INTERRUPTED


def test_a_status_counts_what_was_in_the_files_before_the_log_was_read_and_no_more(tmp_path, monkeypatch):
    run = shard(tmp_path, "s1", 0, 1).ran(0, 0, _ng_run_id="s1")
    before = status.prefixes(run.paths)
    run.ran(1, 0, _ng_run_id="s1")
    monkeypatch.setattr(status, "prefixes", lambda _paths: before)
    assert run_status(run.output).coverage.scored == 1
