"""`gym eval aggregate` as a whole command: against a running stub, and without any server."""

import json
import random

import msgspec
import pytest
from aiohttp import web

from rollbook.scoring.aggregate import compute_aggregate_metrics
from run_folder import ENVIRONMENT, RunFolder, built, failed, rows_of, said, scored
from stub import adding, lines, serving

NOBODY = ["++head_server.host=127.0.0.1", "++head_server.port=9"]


def aggregate(inputs, output, *flags, servers=NOBODY):
    return said(["eval", "aggregate", "-i", str(inputs), "-o", str(output), *flags, *servers])


def metrics_beside(output):
    return json.loads(output.with_name(f"{output.stem}_aggregate_metrics.json").read_bytes())


def without_runs(entries):
    """Return metrics without the names of the runs that their sample rows are of."""
    for task in (task for entry in entries for task in entry["group_level_metrics"]):
        del task["sample"]["_ng_run_id"]
    return entries


def collected(root, stub, count=3, *flags):
    folder = RunFolder(root).asks(adding(count))
    folder.run(stub, "--no-health-check", *flags)
    return folder


def rewarding(rewards):
    return lambda row: web.json_response(
        row | {"reward": rewards[row["_ng_task_index"]][row["_ng_rollout_index"]], "response": {"output": []}}
    )


def test_the_metrics_of_a_run_at_its_end_are_those_that_are_computed_of_it_afterwards(tmp_path):
    with serving(rewarding([[1, 0], [1, 1], [0, 1]])) as stub:
        folder = collected(tmp_path, stub, 3, "--num-repeats", "2")
        live, asked = metrics_beside(folder.output), stub.aggregated[-1]
        answer = aggregate(folder.output, folder.output, "--no-merge", "--no-health-check", servers=stub.overrides)
        assert answer.code == 0, answer.text
        assert metrics_beside(folder.output) == live
        assert stub.aggregated[-1] == asked


def test_a_run_whose_server_fails_at_its_end_has_the_metrics_that_are_computed_without_it_afterwards(tmp_path):
    with serving(rewarding([[1, 0], [1, 1]])) as stub:
        stub.before_metrics = gone
        folder = collected(tmp_path, stub, 2, "--num-repeats", "2")
    (live,) = metrics_beside(folder.output)
    told = aggregate(folder.output, tmp_path / "again.jsonl", "--no-merge", "--no-health-check", "--json")
    (warning,) = json.loads(told.out)["warnings"]
    assert "computed without the server, which was not asked" in warning
    (final,) = metrics_beside(tmp_path / "again.jsonl")
    assert live["aggregation_error"]["http_status"] == 500
    assert (live["computed_locally"], final["computed_locally"]) == (True, True)
    names = ("agent_metrics", "key_metrics", "group_level_metrics", "repeat_level_metrics")
    assert [live[name] for name in names] == [final[name] for name in names]
    assert final["agent_metrics"]["mean_across_repeats/mean/reward"] == 0.75


async def gone():
    raise web.HTTPInternalServerError


def test_servers_that_fail_are_told_in_one_error_once_everything_is_on_disk(tmp_path):
    with serving() as stub:
        folder = collected(tmp_path, stub)
        stub.before_metrics = gone
        answer = aggregate(folder.output, tmp_path / "all" / "r.jsonl", "--no-health-check", servers=stub.overrides)
        assert answer.code == 1
        assert "1 of 1 servers gave no metrics of their own" in answer.err
        assert len(rows_of(tmp_path / "all" / "r.jsonl")) == 3
        (entry,) = metrics_beside(tmp_path / "all" / "r.jsonl")
        assert entry["agent_metrics"]["mean/reward"] == 1.0
        status = json.loads(folder.output.with_name("r_batch_status.json").read_bytes())
        assert status["aggregation"]["state"] == "failed"
        assert "message" not in status["aggregation"]["errors"][0]


def test_the_status_of_a_shard_is_told_of_the_aggregation_and_keeps_its_counts(tmp_path):
    with serving() as stub:
        folder = collected(tmp_path, stub, 3, "--disable-aggregation")
        before = json.loads(folder.output.with_name("r_batch_status.json").read_bytes())
        aggregate(folder.folder, tmp_path / "all.jsonl", "--no-health-check", servers=stub.overrides)
        after = json.loads(folder.output.with_name("r_batch_status.json").read_bytes())
    assert (before["aggregation"]["state"], after["aggregation"]["state"]) == ("skipped", "succeeded")
    assert after["members"] == before["members"]
    assert not (tmp_path / "all_batch_status.json").exists()


def test_zeros_that_a_run_counted_are_counted_by_the_aggregation_as_well(tmp_path):
    with serving(lambda row: web.Response(status=500) if row["_ng_task_index"] == 1 else None) as stub:
        flags = ("--count-failure-class-as-zero", "agent_run_error")
        folder = collected(tmp_path, stub, 3, *flags)
        live, asked = metrics_beside(folder.output), stub.aggregated[-1]
        aggregate(folder.output, folder.output, "--no-merge", "--no-health-check", *flags, servers=stub.overrides)
        assert [row["reward"] for row in asked["verify_responses"]] == [1.0, 0.0, 1.0]
        assert metrics_beside(folder.output) == live
        assert stub.aggregated[-1] == asked


def test_parts_of_a_dataset_come_to_the_same_numbers_as_one_run_of_it(tmp_path):
    """RC-81: shards of one plan."""
    with serving(rewarding([[1, 0], [1, 1], [0, 1], [0, 0], [1, 0]])) as stub:
        whole = collected(tmp_path / "whole", stub, 5, "--num-repeats", "2")
        parts = [
            collected(tmp_path / "parts" / str(part), stub, 5, "--num-repeats", "2", "--task-shard", f"{part}/2")
            for part in (1, 2)
        ]
    inputs = ",".join(str(part.output) for part in parts)
    for output, named in ((tmp_path / "one" / "r.jsonl", whole.output), (tmp_path / "two" / "r.jsonl", inputs)):
        answer = aggregate(named, output, "--no-health-check")
        assert answer.code == 0, answer.text
    one, two = (without_runs(metrics_beside(tmp_path / name / "r.jsonl")) for name in ("one", "two"))
    assert two == one
    assert said(["eval", "status", str(tmp_path / "two")]).code == 0
    plans = [folder / "r_materialized_inputs.jsonl" for folder in (tmp_path / "one", tmp_path / "two")]
    assert plans[0].read_bytes() == plans[1].read_bytes()


def test_rc_02_the_last_row_of_a_shard_that_lacks_only_its_newline_is_aggregated_like_any_other(tmp_path):
    rows = [scored(0), scored(2, 0.0), scored(1)]
    for name, end in (("whole", b"\n"), ("cut", b"")):
        (tmp_path / f"{name}.jsonl").write_bytes(lines(rows).removesuffix(b"\n") + end)
        answer = aggregate(tmp_path / f"{name}.jsonl", tmp_path / name / "r.jsonl", "--no-health-check")
        assert answer.code == 0, answer.text
    one, two = (tmp_path / name / "r.jsonl" for name in ("whole", "cut"))
    assert two.read_bytes() == one.read_bytes()
    assert metrics_beside(two) == metrics_beside(one)


def test_results_of_which_no_plan_tells_whether_they_are_all_are_not_complete(tmp_path):
    (tmp_path / "r.jsonl").write_bytes(lines([scored(0), scored(1)]))
    answer = aggregate(tmp_path / "r.jsonl", tmp_path / "all" / "r.jsonl", "--require-complete")
    assert answer.code == 4
    assert f"no plan lies beside {tmp_path / 'r.jsonl'}. Name a plan" in answer.text
    (tmp_path / "plan").write_bytes(lines([row | {"reward": None} for row in (scored(0), scored(1))]))
    plan = ("--require-complete", "--materialized-inputs", str(tmp_path / "plan"), "--no-health-check")
    assert aggregate(tmp_path / "r.jsonl", tmp_path / "all" / "r.jsonl", *plan).code == 0


def test_rc_81_rollouts_of_two_servers_are_no_copies_of_each_other_in_the_health_check(tmp_path):
    for name in ("one", "two"):
        rows = [scored(task, _ng_environment_server=name, agent_ref={"name": name}) for task in (0, 1)]
        (tmp_path / f"{name}.jsonl").write_bytes(lines(rows))
    told = aggregate(f"{tmp_path}/*.jsonl", tmp_path / "all" / "r.jsonl")
    assert told.code == 0, told.text
    assert "4 checked, 0 healthy, 0 unhealthy, 4 unobserved" in told.text
    assert "gym eval health-check makes them, of each shard by itself" in told.text
    run = json.loads((tmp_path / "all" / "quality_summary.json").read_bytes())["run"]
    assert "rollout_duplicate_identity" in run["ignored_checks"]


def test_rollouts_of_one_server_are_checked_for_copies_although_another_has_rollouts_too(tmp_path):
    rows = [scored(0), scored(1), scored(2, _ng_environment_server="other", agent_ref={"name": "other"})]
    (tmp_path / "r.jsonl").write_bytes(lines(rows))
    assert aggregate(tmp_path / "r.jsonl", tmp_path / "all" / "r.jsonl").code == 0
    assert json.loads((tmp_path / "all" / "quality_summary.json").read_bytes())["run"]["ignored_checks"] == []


def test_runs_of_parts_that_number_their_tasks_alike_are_told_how_to_number_them_as_the_whole(tmp_path):
    with serving() as stub:
        runs = [collected(tmp_path / str(number), stub, 2) for number in (1, 2)]
    answer = aggregate(",".join(str(run.output) for run in runs), tmp_path / "all.jsonl")
    assert answer.code == 1
    assert "--task-shard K/N" in answer.err


@pytest.mark.parametrize("wrong", ["0/2", "3/2", "1", "1/0", "a/b"])
def test_a_part_that_is_none_is_refused_with_the_flag(tmp_path, wrong):
    with serving() as stub:
        answer = RunFolder(tmp_path).asks(adding(2)).run(stub, "--task-shard", wrong)
    assert (answer.code, "--task-shard" in answer.err) == (2, True)


def test_damaged_files_end_with_5_and_give_no_headline(tmp_path):
    """RC-21."""
    with serving() as stub:
        folder = collected(tmp_path, stub)
    plan = folder.output.with_name("r_materialized_inputs.jsonl")
    plan.write_bytes(plan.read_bytes().replace(b"1", b"7", 1))
    answer = aggregate(folder.output, tmp_path / "all" / "r.jsonl", "--no-health-check")
    assert answer.code == 5
    assert "no headline" in answer.out
    assert "are damaged; gym eval status" in answer.out
    told = json.loads((tmp_path / "all" / "r_coverage.json").read_bytes())
    assert told["damaged"] == [str(folder.output)]
    assert told["groups"][0]["headline"]["value"] is None
    assert not (tmp_path / "all" / "r_manifest.json").exists()


def test_a_strict_aggregation_of_damaged_files_names_them_and_does_not_send_to_a_resume(tmp_path):
    folder = built(tmp_path, 4, [scored(0), scored(1)])
    with folder.output.open("ab") as file:
        file.write(b"garbage\n")
    answer = aggregate(folder.output, tmp_path / "all.jsonl", "--require-complete", "--no-health-check")
    assert answer.code == 5
    assert f"Files of {folder.output} are damaged; gym eval status names each place" in answer.err
    assert ("all.jsonl" in answer.err, "--resume" in answer.err) == (False, False)


def test_results_that_lie_alone_are_not_damaged(tmp_path):
    with serving() as stub:
        folder = collected(tmp_path, stub)
    alone = tmp_path / "alone" / "rollouts.jsonl"
    alone.parent.mkdir()
    alone.write_bytes(folder.output.read_bytes())
    answer = aggregate(alone, tmp_path / "all" / "r.jsonl", "--no-health-check")
    assert (answer.code, "no headline" in answer.out) == (0, False)


def test_nobody_is_asked_where_there_is_nothing_to_score(tmp_path):
    folder = built(tmp_path, 2)
    with serving() as stub:
        stub.config = None
        answer = aggregate(folder.output, tmp_path / "all.jsonl", "--no-health-check", servers=stub.overrides)
    assert answer.code == 0, answer.text
    assert "nothing is scored" in answer.err
    assert not (tmp_path / "all_aggregate_metrics.json").exists()


def test_a_strict_aggregation_of_short_shards_publishes_no_score(tmp_path):
    """RC-82."""
    folder = built(tmp_path, 4, [scored(0), scored(1)], [failed(2)])
    answer = aggregate(folder.output, tmp_path / "all.jsonl", "--require-complete", "--json")
    assert answer.code == 4
    assert [path.name for path in tmp_path.glob("all*")] == ["all_coverage.json"]
    assert f"{tmp_path}/all_coverage.json; run the rest of them with gym eval run --resume" in answer.err
    told = json.loads(answer.out)
    assert (told["expected"], told["scored"], told["missing"]) == (4, 2, 1)
    assert told["failed"] == {"agent_run_error": 1}
    assert told["groups"][0]["headline"]["withheld"] == "the aggregation is rejected: 2/4 samples completed"


@pytest.mark.parametrize("pattern", ["*.jsonl", "*_failures.jsonl"])
def test_a_pattern_that_names_no_results_is_an_error(tmp_path, pattern):
    answer = aggregate(tmp_path / "none" / pattern, tmp_path / "all.jsonl")
    assert answer.code != 0
    assert "--input-glob" in answer.err


def test_an_aggregation_whose_health_check_fails_keeps_its_metrics(tmp_path):
    """RC-55, for the step that comes last."""
    folder = built(tmp_path, 1, [scored(0)])
    (tmp_path / "quality_summary.json").mkdir()
    answer = aggregate(folder.output, tmp_path / "all.jsonl")
    assert answer.code == 0
    assert "the health check failed" in answer.err
    assert metrics_beside(tmp_path / "all.jsonl")[0]["agent_metrics"]["mean/reward"] == 1.0


def test_the_order_of_rows_and_shards_changes_no_byte_of_the_metrics(tmp_path):
    """RC-84: rewards by repeat, with a gap in the repeats of the second task."""
    rewards = {(0, 0): 0.5, (0, 1): 1, (0, 2): 0, (1, 0): 1, (1, 2): 0, (1, 3): 0}
    rows = [scored(task, reward, _ng_rollout_index=repeat) for (task, repeat), reward in rewards.items()]
    choose, found = random.Random(1), set()  # noqa: S311  any order will do
    for number in range(10):
        choose.shuffle(rows)
        cut = choose.randrange(len(rows) + 1)
        folder = tmp_path / str(number)
        folder.mkdir()
        for name, part in (("b.jsonl", rows[:cut]), ("a.jsonl", rows[cut:])):
            (folder / name).write_bytes(lines(part))
        assert aggregate(f"{folder}/*.jsonl", folder / "out" / "all.jsonl", "--no-health-check").code == 0
        found.add((folder / "out" / "all_aggregate_metrics.json").read_bytes())
        assert [row["_ng_task_index"] for row in rows_of(folder / "out" / "all.jsonl")] == [0, 0, 0, 1, 1, 1]
    assert len(found) == 1


def test_one_rollout_is_one_sample_whatever_it_holds(tmp_path):
    """RC-77."""
    turns = [{"role": "assistant", "content": str(turn), "reward": 1.0} for turn in range(30)]
    long = scored(0, 0.0) | {
        "response": {"output": turns, "usage": {"output_tokens": 900}},
        "ng_trajectory": {"turns": turns},
    }
    folder = built(tmp_path, 3, [long, scored(1), scored(2)])
    aggregate(folder.output, tmp_path / "all.jsonl", "--no-health-check")
    (entry,) = metrics_beside(tmp_path / "all.jsonl")
    assert entry["agent_metrics"]["mean/reward"] == pytest.approx(2 / 3)
    assert entry["agent_metrics"]["mean/output_tokens"] == 900.0


def test_what_is_computed_here_is_what_a_server_computes_of_the_same_rows(tmp_path):
    """RC-85: one code path; the file holds what `compute_aggregate_metrics` returns."""
    rows = [scored(task, float(task % 2), _ng_rollout_index=repeat) for task in range(3) for repeat in range(2)]
    folder = built(tmp_path, 3, rows)
    folder.plan.unlink()
    aggregate(folder.output, tmp_path / "all.jsonl", "--no-health-check")
    (entry,) = metrics_beside(tmp_path / "all.jsonl")
    light = [{key: value for key, value in row.items() if key != "response"} for row in rows]
    wanted = compute_aggregate_metrics(light).model_dump(exclude_none=True)
    assert msgspec.json.decode(msgspec.json.encode({name: entry[name] for name in wanted})) == wanted
    assert entry["_ng_environment_server"] == ENVIRONMENT


def test_a_merge_that_cannot_be_written_leaves_what_was_there(tmp_path):
    folder = built(tmp_path, 1, [scored(0)])
    merged = tmp_path / "all.jsonl"
    merged.write_text("before\n")
    answer = aggregate(folder.output, merged, "--no-health-check")
    assert (answer.code, merged.read_text()) == (1, "before\n")
    assert "1 of its rows are in none of the files to aggregate" in answer.err
    merged.write_text("\n")
    assert aggregate(folder.output, merged, "--no-health-check").code == 0
    assert rows_of(merged) == rows_of(folder.output)
    merged.unlink()
    merged.mkdir()
    assert aggregate(folder.output, merged, "--no-health-check").code == 1
    assert not list(tmp_path.glob(".all*"))


def test_metrics_and_coverage_that_a_run_has_are_not_replaced_by_what_is_computed_without_its_servers(tmp_path):
    with serving() as stub:
        folder = collected(tmp_path, stub)
        companions = ("r_aggregate_metrics.json", "r_coverage.json")
        before = [folder.output.with_name(name).read_bytes() for name in companions]
        answer = aggregate(folder.output, folder.output, "--no-merge", "--no-health-check")
        assert answer.code == 1
        assert "they are kept" in answer.err
        assert [folder.output.with_name(name).read_bytes() for name in companions] == before
        answer = aggregate(folder.output, folder.output, "--no-merge", "--no-health-check", servers=stub.overrides)
        assert answer.code == 0
        assert "stays as it is" in answer.err
        assert [folder.output.with_name(name).read_bytes() for name in companions] == before


def test_no_file_of_a_run_is_written_over_by_merged_rows(tmp_path):
    folder = built(tmp_path, 2, [scored(0)], [failed(1)])
    files = {path: path.read_bytes() for path in folder.folder.iterdir() if path.is_file()}
    for path in (path for path in files if path != folder.output):
        answer = aggregate(folder.output, path, "--no-health-check")
        assert (answer.code, "give another --output" in answer.err) == (1, True), (path, answer.text)
    assert {path: path.read_bytes() for path in folder.folder.iterdir() if path.is_file()} == files


def test_the_health_check_of_an_aggregation_sees_lines_of_a_shard_that_contradict_each_other(tmp_path):
    folder = built(tmp_path, 2, [scored(0), scored(1), scored(0, 0.0)])
    aggregate(folder.output, tmp_path / "out" / "all.jsonl")
    assert "rollout_duplicate_identity" in (tmp_path / "out" / "rollout_verdicts.jsonl").read_text()


def test_results_that_are_in_two_shards_alike_are_healthy(tmp_path):
    folder = built(tmp_path, 1, [scored(0)])
    copy = tmp_path / "copy.jsonl"
    copy.write_bytes(folder.output.read_bytes())
    aggregate(f"{folder.output},{copy}", tmp_path / "out" / "all.jsonl")
    assert "rollout_duplicate_identity" not in (tmp_path / "out" / "rollout_verdicts.jsonl").read_text()
