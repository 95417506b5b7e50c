"""What is told of several runs together: who ran a rollout, which result measures, and where a rollout stands."""

import pytest

from rollbook.records.group_count import coverage_of
from rollbook.scoring.imputation import NOTHING_COUNTED
from rollbook.verbs import aggregate_shards
from rollbook.verbs.aggregate_shards import Aggregation, read_shards
from rollbook.verbs.status import read_run
from saved_run import append, planned

FAILED = {"_ng_failure_class": "agent_run_error"}


class Shard:
    """A run without a manifest, written as a test says it."""

    def __init__(self, folder, name, *keys):
        self.output = folder / f"{name}.jsonl"
        self.failures = folder / f"{name}_failures.jsonl"
        self.output.touch()
        for task in keys:
            append(folder / f"{name}_materialized_inputs.jsonl", planned(task, 0))

    def result(self, task, reward=1.0, server="e", **fields):
        append(self.output, planned(task, 0, _ng_environment_server=server, reward=reward) | fields)
        return self

    def failure(self, task, server="e", **fields):
        append(self.failures, planned(task, 0, _ng_environment_server=server) | fields)
        return self


def aggregated(*shards):
    return Aggregation(read_shards([shard.output for shard in shards]).shards, NOTHING_COUNTED)


def coverage_by_server(*shards):
    with aggregated(*shards) as found:
        return {report.server: report.coverage for report in found.reports(None)}


def test_a_masked_reward_and_a_result_without_one_are_in_no_headline(tmp_path):
    shard = Shard(tmp_path, "r", 0, 1, 2).result(0).result(1, reward=0.0, mask_sample=True).result(2, reward=None)
    with aggregated(shard) as found:
        (report,) = found.reports(0.1)
    assert (report.headline.value, report.headline.observed.rollouts) == (1.0, 1)


def test_a_rollout_that_was_interrupted_in_one_shard_and_is_only_planned_in_another_is_interrupted(tmp_path):
    interrupted = {"_ng_omitted_rollout": True, "_ng_no_persist": True, "_ng_failure_class": "kill_shaped"}
    shards = [Shard(tmp_path, "a", 0, 1).result(1).failure(0, **interrupted), Shard(tmp_path, "b", 0, 1)]
    for order in (shards, shards[::-1]):
        (coverage,) = coverage_by_server(*order).values()
        assert (coverage.planned, coverage.scored, coverage.interrupted, coverage.untouched) == (2, 1, 1, 0)


def test_a_failure_of_one_server_says_nothing_of_another_ones_rollout_with_the_same_number(tmp_path):
    one, again = (Shard(tmp_path, name, 0, 1).result(1, server="e1") for name in ("a", "b"))
    one.failure(0, "e1", **FAILED)
    other = Shard(tmp_path, "c", 0).failure(0, "e2", **FAILED | {"_ng_failure_class": "agent_request_failed"})
    found = coverage_by_server(one, again, other)
    assert found["e1"].failed_by_class == {"agent_run_error": 1}


def test_an_unstamped_row_belongs_to_the_server_that_its_own_shard_names(tmp_path):
    here = Shard(tmp_path, "a").result(0, server="e1").result(1, server=None)
    there = Shard(tmp_path, "b").result(0, server="e2")
    found = coverage_by_server(here, there)
    assert {server: coverage.scored for server, coverage in found.items()} == {"e1": 2, "e2": 1}


def test_results_beyond_a_plan_that_is_all_there_otherwise_are_not_planned(tmp_path):
    shard = Shard(tmp_path, "r", 0, 1).result(0).result(1).result(2)
    ((_, coverage),) = coverage_by_server(shard).items()
    assert (coverage.planned, coverage.scored, coverage.unplanned) == (2, 2, 1)


def test_a_group_that_ran_for_several_agents_shares_the_plan_of_none(tmp_path):
    shard = Shard(tmp_path, "r", 0, 1, 2).result(0, server="s0").result(1, server="s1")
    append(shard.output, planned(5, 0, _ng_environment_server="s0", reward=1.0, agent_ref={"name": "b"}))
    append(
        tmp_path / "r_materialized_inputs.jsonl", planned(5, 0, agent_ref={"name": "b"}, _ng_environment_server="s0")
    )
    with aggregated(shard) as found:
        reports = {report.server: report.coverage for report in found.reports(None)}
    assert sum(coverage.planned for coverage in reports.values()) == 4
    assert reports["s0"].scored == 2


@pytest.mark.parametrize("counts", [False, True], ids=["results alone", "with a zero"])
def test_rows_are_cut_between_two_tasks_and_only_where_all_are_results(tmp_path, monkeypatch, counts):
    monkeypatch.setattr(aggregate_shards, "_WORTH_A_PROCESS", 8)
    output = tmp_path / "r.jsonl"
    for task in range(20):
        for rollout in range(3):
            append(output, planned(task, rollout, _ng_environment_server="e", reward=1.0))
    if counts:
        zero = planned(20, 0, _ng_environment_server="e") | FAILED | {"_ng_failure_counts_as_zero": True}
        append(tmp_path / "r_failures.jsonl", zero | {"_ng_failure_terminal": True})
    with Aggregation(read_shards([output]).shards, NOTHING_COUNTED) as found:
        (group,) = found.groups
        cut = found.local(group, {}, "here").cut
        assert found.rows_in(group) == 60 + counts
    if counts:
        assert cut is None
    else:
        assert (cut.middle % 3, 0 < cut.taught < cut.middle < 60) == (0, True)


def test_the_counts_of_one_run_are_those_of_its_status(tmp_path):
    shard = Shard(tmp_path, "r", 0, 1, 2, 3).result(0).failure(1, **FAILED)
    reading = read_run(shard.output)
    groups, _ = reading.history.standings.counted(reading.rules)
    (coverage,) = coverage_by_server(shard).values()
    assert coverage == coverage_of(groups)
