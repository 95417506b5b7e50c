import json

import msgspec
import pytest

from rollbook.errors import ConfigPathNotFoundError, InputError
from rollbook.ledger.paths import RunPaths
from rollbook.scoring.aggregate import compute_aggregate_metrics
from rollbook.scoring.imputation import NOTHING_COUNTED, Counting
from rollbook.verbs.aggregate_shards import Aggregation, read_shards
from rollbook.verbs.light_rows import light_row
from rollbook.verbs.metrics_file import write_metrics
from rollbook.verbs.shard_files import refuse_over_run, shard_files
from saved_run import SavedRun, append, planned


def row(task, rollout, server="e", agent="a", **fields):
    named = {"_ng_environment_server": server, "agent_ref": {"name": agent}}
    return {"_ng_task_index": task, "_ng_rollout_index": rollout} | named | {"reward": 1.0} | fields


def shard(path, *rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    for one in rows:
        append(path, one)
    return path


def plan(path, *keys, **fields):
    for task, rollout in keys:
        append(path.with_name(f"{path.stem}_materialized_inputs.jsonl"), planned(task, rollout, **fields))
    return path


def aggregated(*outputs, counting=NOTHING_COUNTED):
    return Aggregation(read_shards(outputs).shards, counting)


def keys_of(found, group):
    return [(one["_ng_task_index"], one["_ng_rollout_index"]) for one in map(msgspec.json.decode, found.rows(group))]


def entries(found, folder):
    path = folder / "metrics.json"
    write_metrics(path, [found.local(group, {}, "here") for group in found.counted], lambda: False)
    return json.loads(path.read_bytes())


def test_patterns_are_trimmed_sorted_and_name_each_file_once(tmp_path):
    for name in ("b.jsonl", "a.jsonl", "a_failures.jsonl", "a_materialized_inputs.jsonl", "a_attempts.jsonl", "n.json"):
        (tmp_path / name).touch()
    (tmp_path / "link.jsonl").symlink_to("a.jsonl")
    files = shard_files(f" {tmp_path}/b.jsonl , {tmp_path}/*.json*,,{tmp_path}", tmp_path / "out.jsonl", merging=True)
    assert [path.name for path in files.outputs] == ["a.jsonl", "b.jsonl"]


@pytest.mark.parametrize("names", [[], ["x_failures.json", "y.txt"]])
def test_patterns_that_name_no_results_are_refused_with_the_flag(tmp_path, names):
    for name in names:
        (tmp_path / name).touch()
    with pytest.raises(ConfigPathNotFoundError, match="--input-glob"):
        shard_files(f"{tmp_path}/*", tmp_path / "out.jsonl", merging=True)


@pytest.mark.parametrize("lost", ["typo/r.jsonl", "typo*/r.jsonl", "typo", "s_failures.jsonl"])
def test_a_shard_that_is_named_and_not_there_is_refused_whatever_else_is_named(tmp_path, lost):
    shard(tmp_path / "r.jsonl", row(0, 0))
    for name in ("s.jsonl", "s_failures.jsonl"):
        (tmp_path / name).touch()
    with pytest.raises(ConfigPathNotFoundError) as caught:
        shard_files(f"{tmp_path}/r.jsonl,{tmp_path}/{lost}", tmp_path / "all.jsonl", merging=True)
    assert str(caught.value).startswith(f"{tmp_path}/{lost}: no result file is there")
    assert "mend it in --input-glob, or leave it out" in str(caught.value)


def test_companions_and_reports_may_be_named_beside_their_run(tmp_path):
    output = shard(tmp_path / "r.jsonl", row(0, 0))
    for name in ("r_failures.jsonl", "r_reward_profiling.jsonl", "r_manifest.json"):
        (tmp_path / name).touch()
    files = shard_files(",".join(map(str, tmp_path.iterdir())), tmp_path / "all.jsonl", merging=True)
    assert (files.outputs, files.notes) == ((output,), ())


def test_a_shard_that_is_named_and_whose_plan_alone_is_there_counts_as_missing(tmp_path):
    here, gone = shard(tmp_path / "r.jsonl", row(0, 0)), plan(tmp_path / "gone.jsonl", (1, 0))
    files = shard_files(f"{here},{gone}", tmp_path / "all.jsonl", merging=True)
    assert files.outputs == (gone, here)
    assert any("gone.jsonl: its results are gone" in note for note in files.notes)


def test_files_without_a_rollout_are_passed_over_and_told(tmp_path):
    (tmp_path / "odd.jsonl").write_text('{"no": "rollout"}\n')
    read = read_shards([tmp_path / "odd.jsonl", shard(tmp_path / "r.jsonl", row(0, 0))])
    assert [one.output.name for one in read.shards] == ["r.jsonl"]
    assert any("odd.jsonl holds no rollout" in note for note in read.notes)


def test_the_file_to_be_written_is_never_read(tmp_path):
    for name in ("a.jsonl", "all.jsonl"):
        shard(tmp_path / name, row(0, 0))
    files = shard_files(f"{tmp_path}/*.jsonl", tmp_path / "all.jsonl", merging=True)
    assert [path.name for path in files.outputs] == ["a.jsonl"]
    assert "all.jsonl is the file to be written" in files.notes[0]
    with pytest.raises(InputError, match="only input"):
        shard_files(str(tmp_path / "all.jsonl"), tmp_path / "all.jsonl", merging=True)
    assert shard_files(str(tmp_path / "all.jsonl"), tmp_path / "all.jsonl", merging=False).outputs


@pytest.mark.parametrize(
    "companion", ["_manifest.json", "_manifest.log", "_materialized_inputs.jsonl", "_failures.jsonl"]
)
def test_merged_rows_are_not_written_over_the_results_of_a_run(tmp_path, companion):
    (tmp_path / f"all{companion}").write_text("x")
    with pytest.raises(InputError, match="--no-merge"):
        refuse_over_run(tmp_path / "all.jsonl")


def test_runs_that_number_their_tasks_alike_share_nothing_where_their_servers_differ(tmp_path):
    """RC-81, V18."""
    first = plan(
        shard(tmp_path / "a.jsonl", *(row(task, 0, "e1", "a") for task in range(3))), *((n, 0) for n in range(3))
    )
    second = plan(tmp_path / "b.jsonl", *((n, 0) for n in range(3)), agent_ref={"name": "b"})
    shard(second, row(0, 0, "e2", "b"), row(2, 0, "e2", "b", reward=0.0))
    append(tmp_path / "b_failures.jsonl", row(1, 0, "e2", "b", reward=None) | {"_ng_failure_class": "agent_run_error"})
    with aggregated(first, second) as found:
        one, other = found.reports(None)
        assert (one.label, one.coverage.scored, one.coverage.planned) == ("a", 3, 3)
        assert (other.label, other.coverage.scored, other.coverage.planned) == ("b", 2, 3)
        assert other.coverage.failed_by_class == {"agent_run_error": 1}
        means = {
            entry["_ng_environment_server"]: entry["key_metrics"]["mean/reward"] for entry in entries(found, tmp_path)
        }
        assert means == {"e1": 1.0, "e2": 0.5}


def test_a_shard_whose_results_are_gone_and_a_short_one_are_missing_from_the_counts(tmp_path):
    """RC-82."""
    for number in range(3):
        keys = [(task, 0) for task in range(4 * number, 4 * number + 4)]
        output = plan(tmp_path / f"s{number}.jsonl", *keys)
        if number != 1:
            shard(output, *(row(*key) for key in keys[: 4 - number]))
    files = shard_files(f"{tmp_path}/s*.jsonl", tmp_path / "all.jsonl", merging=True)
    assert any("s1.jsonl: its results are gone" in note for note in files.notes)
    with aggregated(*files.outputs) as found:
        (report,) = found.reports(None)
        assert (report.coverage.scored, report.coverage.planned, report.coverage.missing) == (6, 12, 6)
        assert report.headline.withheld


def test_the_same_results_in_two_files_count_once_and_it_is_said(tmp_path):
    rows = [row(0, 0), row(1, 0, reward=0.0)]
    with aggregated(shard(tmp_path / "a.jsonl", *rows), shard(tmp_path / "b.jsonl", *rows, row(2, 0))) as found:
        assert keys_of(found, found.groups[0]) == [(0, 0), (1, 0), (2, 0)]
        assert any("2 results are in" in note for note in found.notes)


def test_results_that_contradict_each_other_are_refused_with_both_files_named(tmp_path):
    run = {"_ng_run_id": "r1"}
    one, other = (shard(tmp_path / f"{n}.jsonl", row(0, 0, reward=n, **run)) for n in (0, 1))
    with pytest.raises(InputError, match=r"0.jsonl:1 and .*1.jsonl:1: two different results of attempt 0"):
        aggregated(one, other).__enter__()


def test_independent_runs_that_overlap_at_one_server_are_refused_with_what_to_type(tmp_path):
    one, other = (shard(tmp_path / f"{n}.jsonl", row(0, 0, _ng_run_id=f"r{n}")) for n in (0, 1))
    with pytest.raises(InputError, match=r"independent runs \(r0 and r1\).*gym eval compare"):
        aggregated(one, other).__enter__()


def test_of_a_run_and_its_older_copy_the_later_attempt_stands(tmp_path):
    old = shard(tmp_path / "old.jsonl", row(0, 0, _ng_run_id="r", mask_sample=True))
    new = shard(tmp_path / "new.jsonl", row(0, 0, _ng_run_id="r", _ng_attempt_index=1, reward=0.5))
    with aggregated(new, old) as found:
        (kept,) = map(msgspec.json.decode, found.rows(found.groups[0]))
        assert kept["reward"] == 0.5


def test_the_fold_of_each_shard_says_what_stands_of_it(tmp_path):
    run = SavedRun(tmp_path, [planned(0, 0)])
    run.ran(0, 0, reward=0.25).reserves((0, 0, 1)).result(0, 0, 1, reward=0.75)
    with aggregated(run.output) as found:
        (kept,) = map(msgspec.json.decode, found.rows(found.groups[0]))
        assert kept["reward"] == 0.75


def test_an_unstamped_row_belongs_to_the_server_that_ran_the_rest_of_its_agent(tmp_path):
    with aggregated(shard(tmp_path / "a.jsonl", row(0, 0, None), row(1, 0, "e"))) as found:
        assert [group.name for group in found.groups] == ["e"]
        assert keys_of(found, found.groups[0]) == [(0, 0), (1, 0)]


def test_an_agent_behind_two_servers_has_a_group_of_its_own_for_rows_without_one(tmp_path):
    rows = [row(0, 0, None), row(1, 0, "e1"), row(2, 0, "e2")]
    with aggregated(shard(tmp_path / "a.jsonl", *rows)) as found:
        assert [(group.name, group.is_served) for group in found.groups] == [("a", False), ("e1", True), ("e2", True)]


def test_the_last_failure_of_a_rollout_over_shards_is_chosen_before_it_is_counted(tmp_path):
    """V16 over shards: a later failure of another class keeps the rollout out."""
    for name, failure in (("a", "agent_run_error"), ("b", "agent_request_failed")):
        output = plan(shard(tmp_path / f"{name}.jsonl"), (0, 0), (1, 0))
        append(output.with_name(f"{name}_failures.jsonl"), planned(0, 0) | {"_ng_failure_class": failure})
    append(tmp_path / "a.jsonl", row(1, 0, None))
    outputs = (tmp_path / "a.jsonl", tmp_path / "b.jsonl")
    with aggregated(*outputs, counting=Counting(frozenset({"agent_run_error"}), missing=True)) as found:
        assert keys_of(found, found.groups[0]) == [(1, 0)]
    with aggregated(*outputs, counting=Counting(frozenset({"agent_request_failed"}))) as found:
        assert keys_of(found, found.groups[0]) == [(0, 0), (1, 0)]


def test_what_an_explicit_inventory_plans_and_no_shard_has_is_missing(tmp_path):
    inventory = tmp_path / "plan.jsonl"
    for task in range(3):
        append(inventory, planned(task, 0))
    output = shard(tmp_path / "a.jsonl", row(0, 0, None))
    shards = read_shards([output], inventory).shards
    with Aggregation(shards, Counting(missing=True)) as found:
        assert keys_of(found, found.groups[0]) == [(0, 0), (1, 0), (2, 0)]
        (report,) = found.reports(0.0)
        assert (report.coverage.planned, report.imputed, report.headline.observed.mean) == (3, 2, pytest.approx(1 / 3))


def test_merged_rows_are_sorted_and_none_is_changed(tmp_path):
    rows = [row(1, 0), row(0, 1), row(0, 0, "e2", "b", note="é")]
    outputs = [shard(tmp_path / "a.jsonl", *rows[:2]), shard(tmp_path / "b.jsonl", rows[2])]
    with aggregated(*outputs) as found:
        assert found.write_merged(RunPaths(tmp_path / "all.jsonl"), "now").rows == 3
    assert (tmp_path / "all.jsonl").read_bytes().splitlines() == [
        json.dumps(one).encode() for one in (rows[2], rows[1], rows[0])
    ]


def test_metrics_computed_here_are_those_of_the_rows_together(tmp_path):
    """V7 and V8, over two shards in either order."""
    rewards = {(0, 0): 1, (0, 1): 0, (1, 0): 1, (1, 1): 1}
    rows = [row(*key, reward=reward, mask_sample=key == (1, 1)) for key, reward in rewards.items()]
    one, other = shard(tmp_path / "a.jsonl", rows[3], rows[0]), shard(tmp_path / "b.jsonl", rows[2], rows[1])
    together = compute_aggregate_metrics([msgspec.json.decode(light_row(json.dumps(one).encode())) for one in rows])
    wanted = together.model_dump(exclude_none=True)
    share = {"coverage/expected": 4, "coverage/scored": 3, "coverage/missing": 0, "coverage/masked": 1}
    for name in ("agent_metrics", "key_metrics"):
        wanted[name] |= share
    for outputs in ((one, other), (other, one)):
        with aggregated(*outputs) as found:
            (entry,) = entries(found, tmp_path)
            assert {name: entry[name] for name in wanted} == wanted
    assert wanted["agent_metrics"]["mean/reward"] == pytest.approx(2 / 3)
    assert wanted["agent_metrics"]["coverage/masked_rollouts"] == 1


def test_results_that_are_in_no_plan_are_in_no_number_and_are_counted(tmp_path):
    inside = [row(0, 0, reward=0.0), row(1, 0, reward=0.0)]
    output = plan(shard(tmp_path / "r.jsonl", *inside, row(10, 0), row(11, 0)), *((task, 0) for task in range(4)))
    with aggregated(output) as found:
        (report,) = found.reports(0.5)
        (entry,) = entries(found, tmp_path)
    assert (report.coverage.planned, report.coverage.scored, report.coverage.unplanned) == (4, 2, 2)
    assert (report.headline.value, report.headline.coverage) == (0.0, 0.5)
    assert (report.headline.bounds.low, report.headline.bounds.high) == (0.0, 0.5)
    assert entry["agent_metrics"]["mean/reward"] == 0.0
    assert entry["agent_metrics"]["coverage/scored"] == 2


def test_results_that_the_plan_of_all_shards_does_not_name_are_in_no_number(tmp_path):
    output = shard(tmp_path / "r.jsonl", row(0, 0, reward=0.0), row(7, 0))
    inventory = tmp_path / "inventory.jsonl"
    for task in range(2):
        append(inventory, planned(task, 0, _ng_environment_server="e"))
    with Aggregation(read_shards([output], inventory).shards, NOTHING_COUNTED) as found:
        (report,) = found.reports(None)
    assert (report.coverage.planned, report.coverage.scored, report.coverage.unplanned) == (2, 1, 1)
    assert report.headline.observed.mean == 0.0


def test_what_has_a_result_without_a_reward_or_with_a_masked_one_is_in_the_share_by_itself(tmp_path):
    rows = [row(0, 0), row(1, 0, reward=None), row(2, 0, mask_sample=True)]
    with aggregated(plan(shard(tmp_path / "r.jsonl", *rows), *((task, 0) for task in range(4)))) as found:
        (entry,) = entries(found, tmp_path)
    told = {name: value for name, value in entry["key_metrics"].items() if name.startswith("coverage/")}
    assert told.items() >= {"coverage/expected": 4, "coverage/scored": 1, "coverage/missing": 1}.items()
    assert (told["coverage/unscored"], told["coverage/masked"]) == (1, 1)


def test_what_is_missing_and_counts_as_zero_is_no_scored_rollout(tmp_path):
    output = plan(shard(tmp_path / "r.jsonl", row(0, 0)), (0, 0), (1, 0), _ng_environment_server="e")
    with aggregated(output, counting=Counting(missing=True)) as found:
        (entry,) = entries(found, tmp_path)
    share = {"coverage/expected": 2, "coverage/scored": 1, "coverage/imputed": 1, "coverage/missing": 0}
    assert entry["agent_metrics"].items() >= share.items()
    assert entry["agent_metrics"]["mean/reward"] == 0.5


@pytest.mark.parametrize("tasks", [(0, 2**40), (2**40, 0)])
def test_a_task_with_a_number_that_no_array_holds_is_aggregated_like_any_other(tmp_path, tasks):
    output = shard(tmp_path / "r.jsonl", *(row(task, 0, reward=float(task > 0)) for task in tasks))
    with aggregated(output) as found:
        (report,) = found.reports(None)
        (entry,) = entries(found, tmp_path)
    assert (report.coverage.scored, report.headline.value) == (2, 0.5)
    assert [task["_ng_task_index"] for task in entry["group_level_metrics"]] == [0, 2**40]


def test_rows_without_an_agent_and_a_server_are_of_no_server_and_not_called_none(tmp_path):
    nameless = {"_ng_task_index": 0, "_ng_rollout_index": 0, "reward": 1.0}
    with aggregated(shard(tmp_path / "r.jsonl", nameless)) as found:
        (entry,) = entries(found, tmp_path)
    assert (entry["agent_ref"], entry["_ng_environment_server"]) == ({"name": "(no agent)"}, None)


def test_servers_that_share_a_plan_which_names_none_of_them_have_one_headline_and_one_share(tmp_path):
    rows = [row(0, 0, "s0"), row(1, 0, "s0"), row(2, 0, "s1", reward=0.0)]
    output = plan(shard(tmp_path / "r.jsonl", *rows), *((task, 0) for task in range(4)))
    with aggregated(output) as found:
        (report,) = found.reports(0.5)
        first, second = entries(found, tmp_path)
    assert (report.label, report.server, report.coverage.scored, report.coverage.planned) == ("a", None, 3, 4)
    assert report.headline.value == pytest.approx(2 / 3)
    share = {"coverage/expected": 4, "coverage/scored": 3, "coverage/missing": 1}
    assert first["agent_metrics"].items() >= (share | {"mean/reward": 1.0}).items()
    assert second["agent_metrics"].items() >= (share | {"mean/reward": 0.0}).items()
