import json

import pytest

from rollbook.errors import InputError, LedgerError
from rollbook.verbs.metrics_file import LocalEntry
from rollbook.verbs.shard_output import own_reports, refuse_file_of_run, refuse_lost_rows
from saved_run import append

LOCAL = LocalEntry({}, lambda: iter(()), lambda _task: None, lambda metrics: metrics)


def rows(path, *tasks):
    for task in tasks:
        append(path, {"_ng_task_index": task, "_ng_rollout_index": 0, "reward": 1.0})
    return path


@pytest.mark.parametrize(
    "name",
    ["r_failures.jsonl", "r_materialized_inputs.jsonl", "r_manifest.json", "r_manifest.log", "r_coverage.json"],
)
def test_an_output_with_the_name_of_a_companion_of_a_run_is_refused(tmp_path, name):
    rows(tmp_path / "r.jsonl", 0)
    with pytest.raises(InputError, match=r"file of the run .*r\.jsonl; give another --output"):
        refuse_file_of_run(tmp_path / name)
    (tmp_path / "link.jsonl").symlink_to(name)
    with pytest.raises(InputError, match="file of the run"):
        refuse_file_of_run(tmp_path / "link.jsonl")


def test_an_output_whose_reports_are_those_of_another_run_is_refused(tmp_path):
    rows(tmp_path / "r.jsonl", 0)
    (tmp_path / "r_failures.jsonl").touch()
    with pytest.raises(LedgerError, match="--output"):
        refuse_file_of_run(tmp_path / "r.txt")


def test_a_name_that_only_looks_like_a_companion_is_free(tmp_path):
    refuse_file_of_run(tmp_path / "of_all_failures.jsonl")
    refuse_file_of_run(rows(tmp_path / "r.jsonl", 0))


def test_rows_that_no_shard_holds_are_not_written_over(tmp_path):
    output = rows(tmp_path / "other.jsonl", 0, 1, 2)
    with pytest.raises(InputError, match="2 of its rows are in none"):
        refuse_lost_rows(output, [rows(tmp_path / "a.jsonl", 1), tmp_path / "gone.jsonl"])
    refuse_lost_rows(output, [tmp_path / "a.jsonl", rows(tmp_path / "b.jsonl", 0, 2)])
    refuse_lost_rows(tmp_path / "new.jsonl", [])


def test_what_the_servers_of_a_run_computed_is_not_replaced_by_what_is_computed_here(tmp_path):
    output = rows(tmp_path / "r.jsonl", 0)
    metrics = tmp_path / "r_aggregate_metrics.json"
    metrics.write_text(json.dumps([{"agent_metrics": {}}]))
    own = own_reports(output, merging=False)
    own.refuse_others([{"agent_metrics": {}}])
    with pytest.raises(InputError, match="they are kept"):
        own.refuse_others([{"agent_metrics": {}}, LOCAL])
    metrics.write_text(json.dumps([{"agent_metrics": {}, "computed_locally": True}]))
    own.refuse_others([LOCAL])


def test_the_coverage_report_of_a_run_stays_and_that_of_an_aggregation_does_not(tmp_path):
    output, coverage = rows(tmp_path / "r.jsonl", 0), tmp_path / "r_coverage.json"
    own = own_reports(output, merging=False)
    assert not own.keep_coverage()
    coverage.write_text('{"schema_version": 1, "expected": 1}')
    assert own.keep_coverage()
    assert not own_reports(tmp_path / "r.jsonl", merging=True).keep_coverage()
    coverage.write_text('{"schema_version": 1, "expected": 1, "shards": ["r.jsonl"]}')
    assert not own.keep_coverage()
