"""`gym eval reverify`: answers of a run judged again into an output of their own."""

import json

import pytest
from aiohttp import web

from run_folder import RunFolder, built, failed, planned, rows_of, said, scored
from stub import AGENT, ENVIRONMENT, adding, lines
from verifying import OTHER, SERVER, answered, judge_failed, of_task, reverified, verifying

ANSWER = {"output": [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "4"}]}]}


@pytest.fixture
def stub():
    with verifying(answered()) as running:
        yield running


@pytest.fixture
def folder(tmp_path, stub):
    folder = RunFolder(tmp_path).asks(adding(4, expected_answer="4"))
    folder.run(stub)
    return folder


@pytest.fixture
def again(tmp_path):
    return tmp_path / "again" / "v.jsonl"


def told(answer):
    assert answer.code == 0, answer.text
    return json.loads(answer.out)


def test_rewards_are_computed_anew_and_no_model_is_asked(folder, again, stub):
    stub.verify_script = lambda row: {"reward": float(row["_ng_task_index"] % 2)}
    asked = len(stub.requests)
    report = told(reverified(stub, folder.output, again, "--json"))
    assert len(stub.requests) == asked
    assert [row["reward"] for row in rows_of(again)] == [0.0, 1.0, 0.0, 1.0]
    delta = report["delta"]
    assert (delta["judged_both_times"], delta["old_mean"], delta["new_mean"]) == (4, 1.0, 0.5)
    assert (delta["changed"], delta["up"], delta["down"]) == (2, 0, 2)
    assert delta["first_changes"][0] == {"task": 0, "rollout": 0, "old": 1.0, "new": 0.0}


def test_the_same_verifier_changes_no_reward(folder, again, stub):
    assert told(reverified(stub, folder.output, again, "--json"))["delta"]["changed"] == 0


def test_the_verifier_is_sent_the_planned_row_and_the_answer_and_no_reward(folder, again, stub):
    reverified(stub, folder.output, again)
    for row in stub.judged:
        assert row["expected_answer"] == "4"
        assert row["response"] == ANSWER
        assert "reward" not in row
        assert not [key for key in row if key.startswith("_ng_failure")]


def test_the_output_is_a_run_that_status_reads(folder, again, stub):
    reverified(stub, folder.output, again)
    status = said(["eval", "status", str(again), "--json"])
    (run,) = json.loads(status.out)["runs"]
    assert status.code == 0
    assert (run["coverage"]["planned"], run["coverage"]["scored"]) == (4, 4)
    manifest = json.loads((again.parent / "v_manifest.json").read_bytes())
    assert manifest["reverified"]["source_run_id"] == folder.told_manifest()["run_id"]
    assert {row["agent_ref"]["name"] for row in rows_of(again)} == {AGENT}
    assert {row["_ng_environment_server"] for row in rows_of(again)} == {ENVIRONMENT}


def test_the_run_whose_answers_are_judged_is_left_as_it_is(folder, again, stub):
    before = {path.name: path.read_bytes() for path in folder.folder.iterdir()}
    reverified(stub, folder.output, again)
    assert {path.name: path.read_bytes() for path in folder.folder.iterdir()} == before


def test_metrics_are_those_of_the_server_that_judged(folder, again, stub):
    stub.verify_script = lambda _row: {"reward": 0.25}
    reverified(stub, folder.output, again)
    (entry,) = json.loads((again.parent / "v_aggregate_metrics.json").read_bytes())
    assert entry["agent_ref"] == {"name": AGENT}
    assert entry["key_metrics"] == {"mean/reward": 0.25}
    assert "_ng_environment_server" not in entry


def test_metrics_say_what_of_the_plan_the_judged_answers_are(tmp_path, again, stub):
    stub.verify_script = lambda row: {"reward": None if of_task(1)(row) else 1.0}
    reverified(stub, foreign(tmp_path, [scored(0), scored(1, 0.0)]).output, again)
    (entry,) = json.loads((again.parent / "v_aggregate_metrics.json").read_bytes())
    told = {name: value for name, value in entry["key_metrics"].items() if name.startswith("coverage/")}
    assert told.items() >= {"coverage/expected": 4, "coverage/scored": 1, "coverage/missing": 2}.items()
    assert told["coverage/unscored"] == 1


def test_without_aggregation_nobody_is_asked_for_metrics(folder, again, stub):
    before = len(stub.aggregated)
    reverified(stub, folder.output, again, "--disable-aggregation")
    assert len(stub.aggregated) == before
    assert not (again.parent / "v_aggregate_metrics.json").exists()


@pytest.mark.parametrize("mode", ["unsupported", "unknown"])
def test_a_server_that_may_keep_state_is_refused_by_name_and_forced_into_an_output_that_says_so(
    folder, again, stub, mode
):
    stub.mode = mode
    refused = reverified(stub, folder.output, again)
    assert refused.code == 1
    for what in (SERVER, mode, "++force=true", "unsafe_"):
        assert what in refused.err
    assert stub.judged == []
    assert not again.exists()
    forced = reverified(stub, folder.output, again, "--force")
    assert forced.code == 0, forced.text
    assert forced.err.count("nobody vouches") == 2
    assert len(rows_of(again.with_name("unsafe_v.jsonl"))) == 4
    assert not again.exists()


def test_force_replaces_no_output_where_no_server_needs_it(folder, again, stub):
    reverified(stub, folder.output, again)
    assert reverified(stub, folder.output, again, "--force").code == 1
    assert len(stub.judged) == 4


def test_a_server_that_does_not_say_is_refused(folder, again, stub):
    stub.mode = {"no": "word"}
    assert "unknown" in reverified(stub, folder.output, again).err


def test_an_output_that_is_there_is_refused_and_named(folder, again, stub):
    reverified(stub, folder.output, again)
    refused = reverified(stub, folder.output, again)
    assert refused.code == 1
    for what in (str(again), "--overwrite", "--resume"):
        assert what in refused.err
    assert len(stub.judged) == 4
    assert reverified(stub, folder.output, again, "--overwrite").code == 0
    assert len(rows_of(again)) == 4


def test_a_resume_judges_what_is_left_within_the_limit(folder, again, stub):
    assert told(reverified(stub, folder.output, again, "--limit", "2", "--json"))["selected"] == 2
    report = told(reverified(stub, folder.output, again, "--limit", "3", "--resume", "--json"))
    assert (report["selected"], len(stub.judged)) == (3, 3)
    assert reverified(stub, folder.output, again, "--resume").code == 0
    assert [row["_ng_task_index"] for row in stub.judged] == [0, 1, 2, 3]


def test_a_verifier_that_is_another_one_now_is_not_mixed_in(folder, again, stub):
    stub.hosting(**{SERVER: {"tolerance": 1}})
    reverified(stub, folder.output, again, "--limit", "2")
    stub.hosting(**{SERVER: {"tolerance": 2}})
    refused = reverified(stub, folder.output, again, "--resume")
    assert refused.code == 1
    assert "tolerance" in refused.err
    assert len(stub.judged) == 2


def test_the_run_itself_is_not_written_over(folder, stub):
    before = folder.output.read_bytes()
    refused = reverified(stub, folder.output, folder.output, "--overwrite")
    assert (refused.code, folder.output.read_bytes()) == (1, before)


def test_an_http_error_ends_the_command_and_a_resume_judges_the_rest(folder, again, stub):
    def breaking(row):
        return web.Response(status=500, text="no") if row["_ng_task_index"] == 2 else {"reward": 1.0}

    stub.verify_script = breaking
    broken = reverified(stub, folder.output, again)
    assert broken.code == 1
    assert "/verify of rollout 2-0 failed on sums" in broken.err
    assert "--resume" in broken.err
    assert len(rows_of(again)) == 2
    stub.verify_script = lambda _row: {"reward": 1.0}
    assert reverified(stub, folder.output, again, "--resume").code == 0
    assert [row["_ng_task_index"] for row in stub.judged] == [0, 1, 2, 2, 3]


def test_failures_that_are_routed_go_to_the_sidecar_and_the_rest_is_judged(folder, again, stub):
    stub.verify_script = lambda row: web.Response(status=500) if of_task(1)(row) else {"reward": 1.0}
    answer = reverified(stub, folder.output, again, "--route-failures")
    assert answer.code == 3
    assert [row["_ng_task_index"] for row in rows_of(again)] == [0, 2, 3]
    assert [row["_ng_task_index"] for row in rows_of(again.with_name("v_failures.jsonl"))] == [1]


def test_a_judge_that_fails_leaves_a_row_in_the_sidecar_that_a_resume_judges(folder, again, stub):
    stub.verify_script = lambda row: judge_failed(row) if of_task(1)(row) else {"reward": 0.0}
    assert reverified(stub, folder.output, again).code == 3
    stub.verify_script = lambda _row: {"reward": 1.0}
    assert reverified(stub, folder.output, again, "--resume").code == 0
    assert len(stub.judged) == 5
    assert sorted(row["_ng_task_index"] for row in rows_of(again)) == [0, 1, 2, 3]


def foreign(tmp_path, results, failures=(), tasks=4):
    return built(tmp_path / "foreign", tasks, [row | {"response": ANSWER} for row in results], failures)


def test_a_folder_without_a_manifest_is_judged(tmp_path, again, stub):
    folder = foreign(tmp_path, [scored(0), scored(1, 0.0)])
    report = told(reverified(stub, folder.output, again, "--json"))
    assert (report["selected"], report["delta"]["up"]) == (2, 1)
    assert (report["coverage"]["expected"], report["coverage"]["scored"]) == (4, 2)
    (headline,) = report["headlines"]
    assert (headline["agent"], headline["value"], headline["measured"]) == (AGENT, None, 2)
    assert headline["bounds"] is not None


def test_rows_beside_their_inputs_need_no_companion_names(tmp_path, again, stub):
    folder = foreign(tmp_path, [scored(0)])
    inputs = folder.plan.rename(tmp_path / "inputs.jsonl")
    assert reverified(stub, folder.output, again, "--inputs", str(inputs)).code == 0


def test_inputs_whose_last_line_has_no_newline_are_whole(tmp_path, again, stub):
    folder = foreign(tmp_path, [scored(3)])
    folder.plan.write_bytes(folder.plan.read_bytes().rstrip(b"\n"))
    assert told(reverified(stub, folder.output, again, "--json"))["selected"] == 1


@pytest.mark.parametrize(
    ("files", "what"),
    [
        (([scored(7)], None), ["7-0", "materialized_inputs"]),
        (([scored(0, response=None, _ng_result_type="code_agent")], None), ["0-0", "code_agent", ":1"]),
        (([scored(0)], [{"no": "rollout"}]), ["materialized_inputs.jsonl:1"]),
        (([scored(0)], [planned(0), planned(0)]), ["planned twice"]),
    ],
)
def test_what_cannot_be_judged_is_named_and_nothing_is_sent(tmp_path, again, stub, files, what):
    results, plan = files
    folder = built(tmp_path / "foreign", 2, results)
    if plan is not None:
        folder.plan.write_bytes(lines(plan))
    refused = reverified(stub, folder.output, again)
    assert refused.code == 1
    for word in what:
        assert word in refused.err
    assert stub.judged == []
    assert not again.exists()


def test_a_line_that_is_no_record_is_named(tmp_path, again, stub):
    folder = foreign(tmp_path, [scored(0)])
    with folder.results.open("ab") as file:
        file.write(b"no json\n")
    refused = reverified(stub, folder.output, again)
    assert refused.code == 1
    assert f"{folder.output}:2" in refused.err


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (("--inputs", "gone.jsonl"), (1, ["gone.jsonl", "--inputs"])),
        (("--rollouts", "gone.jsonl"), (2, ["gone.jsonl"])),
        (("--append",), (1, ["append needs judge_failed_only"])),
        (("--overwrite", "--resume"), (1, ["exclude each other"])),
        (("--atif-manifest", "a.jsonl"), (1, ["input_format=gym excludes"])),
        (("--input-format", "atif"), (1, ["needs atif_manifest_jsonl_fpath"])),
        (("--limit", "0"), (2, ["limit"])),
    ],
)
def test_a_command_that_makes_no_sense_is_refused(folder, again, stub, flags, told):
    code, what = told
    refused = reverified(stub, folder.output, again, *flags)
    assert refused.code == code
    for word in what:
        assert word in refused.err
    assert stub.judged == []


def test_a_source_that_names_a_resources_server_goes_there(tmp_path, again, stub):
    stub.hosting(**{OTHER: {}})
    folder = foreign(tmp_path, [scored(0), scored(1)])
    folder.plan.write_bytes(lines([planned(0, task_source=OTHER), planned(1, task_source=SERVER)]))
    report = told(reverified(stub, folder.output, again, "--json"))
    assert [one["agent_ref"]["name"] for one in report["metrics"]] == [OTHER, SERVER]


def test_answers_that_nobody_judges_are_refused_with_what_there_is(tmp_path, again, stub):
    folder = foreign(tmp_path, [scored(0, agent_ref={"name": "stranger"}, _ng_environment_server=None)])
    folder.plan.write_bytes(lines([planned(0, agent_ref={"name": "stranger"})]))
    refused = reverified(stub, folder.output, again)
    assert refused.code == 1
    assert "stranger" in refused.err
    assert SERVER in refused.err


def test_a_materialized_task_is_sent_flat(tmp_path, again, stub):
    task_input = {"responses_create_params": {"input": "2+2"}, "task_data": {"expected_answer": "4"}, "hint": "add"}
    row = {
        "task_id": {"taskset": "sums", "task_id": "a"},
        "task_input": task_input,
        "_ng_environment_server": ENVIRONMENT,
    }
    folder = foreign(tmp_path, [scored(0)])
    folder.plan.write_bytes(lines([row | {"_ng_task_index": 0, "_ng_rollout_index": 0}]))
    assert reverified(stub, folder.output, again).code == 0
    (sent,) = stub.judged
    assert (sent["expected_answer"], sent["hint"]) == ("4", "add")
    assert "task_input" not in sent


def test_two_values_for_one_key_of_a_task_are_refused(tmp_path, again, stub):
    task_input = {"task_data": {"hint": "add"}, "hint": "multiply"}
    row = {"task_id": {"taskset": "sums", "task_id": "a"}, "task_input": task_input, "agent_ref": {"name": AGENT}}
    folder = foreign(tmp_path, [scored(0)])
    folder.plan.write_bytes(lines([row | {"_ng_task_index": 0, "_ng_rollout_index": 0}]))
    refused = reverified(stub, folder.output, again)
    assert refused.code == 1
    assert "`hint`" in refused.err


def of_judge(task, **extra):
    return failed(task, "judge_failed", response=ANSWER, failure_kind="judge_failed", **extra)


def test_recovery_takes_results_over_and_judges_what_a_judge_failed_on(tmp_path, again, stub):
    folder = foreign(tmp_path, [scored(0, 0.25)], [of_judge(1), of_judge(1), failed(2)])
    stub.mode = "unsupported"
    answer = reverified(stub, folder.output, again, "--judge-failed-only", "--json")
    report = told(answer)
    assert "two configurations of the verifier" in answer.err
    assert [row["_ng_task_index"] for row in stub.judged] == [1]
    assert {row["_ng_task_index"]: row["reward"] for row in rows_of(again)} == {0: 0.25, 1: 1.0}
    assert (report["selected"], report["delta"]["newly_scored"]) == (1, 1)
    again_said = reverified(stub, folder.output, again, "--judge-failed-only", "--append")
    assert again_said.code == 0, again_said.text
    assert len(stub.judged) == 1
    assert len(rows_of(again)) == 2
    assert said(["eval", "status", str(again)]).code == 3


def test_results_of_a_managed_run_are_taken_over_under_the_name_of_the_new_one(tmp_path, again):
    failing = of_task(1, 2)
    script = answered()
    with verifying(lambda row: web.json_response(row | judge_failed(row)) if failing(row) else script(row)) as stub:
        folder = RunFolder(tmp_path).asks(adding(4))
        folder.run(stub)
        assert reverified(stub, folder.output, again, "--judge-failed-only", "--limit", "1").code == 0
        assert reverified(stub, folder.output, again, "--judge-failed-only", "--resume").code == 0
        assert [row["_ng_task_index"] for row in stub.judged] == [1, 2]
    (run_id,) = {row["_ng_run_id"] for row in rows_of(again)}
    assert run_id != folder.told_manifest()["run_id"]
    status = said(["eval", "status", str(again), "--json"])
    (run,) = json.loads(status.out)["runs"]
    assert (status.code, run["damage"], run["coverage"]["scored"]) == (0, [], 4)


def test_an_interrupted_row_hides_no_judge_failure_from_recovery_and_an_omitted_one_is_none(tmp_path, again, stub):
    omitted = {"_ng_omitted_rollout": True, "_ng_no_persist": True}
    rows = [of_judge(0), failed(0, "kill_shaped", **omitted), of_judge(1, stage_index=2, **omitted)]
    folder = foreign(tmp_path, [], rows)
    assert told(reverified(stub, folder.output, again, "--judge-failed-only", "--json"))["selected"] == 1
    assert [row["_ng_task_index"] for row in stub.judged] == [0]


def test_rows_of_several_stages_are_refused_before_anything_is_written(tmp_path, again, stub):
    folder = foreign(tmp_path, [], [of_judge(0, stage_index=1)])
    refused = reverified(stub, folder.output, again, "--judge-failed-only")
    assert refused.code == 1
    assert "stage_index" in refused.err
    assert not again.exists()


def test_an_unreadable_verdict_is_judged_again_when_asked_for(tmp_path, again, stub):
    folder = foreign(tmp_path, [scored(0, 0.0, invalid_judge_response=True), scored(1, 0.0)])
    flags = ("--judge-failed-only", "+retry_invalid_judge_responses=true")
    assert reverified(stub, folder.output, again, *flags).code == 0
    assert [row["_ng_task_index"] for row in stub.judged] == [0]
    assert {row["_ng_task_index"]: row["reward"] for row in rows_of(again)} == {0: 1.0, 1: 0.0}


def test_a_folder_without_a_manifest_takes_what_its_judge_owes(tmp_path, stub):
    folder = foreign(tmp_path, [scored(0)], [failed(1), of_judge(1)])
    answer = reverified(stub, folder.output, None, "--judge-failed-only", "--append")
    assert answer.code == 0, answer.text
    assert {row["_ng_task_index"] for row in rows_of(folder.results)} == {0, 1}
    status = folder.status()
    assert (status["coverage"]["scored"], status["damage"]) == (2, [])
    reverified(stub, folder.output, None, "--judge-failed-only", "--append")
    assert len(stub.judged) == 1


def test_the_mean_that_a_resume_shows_is_the_one_that_it_ends_with(folder, again, stub):
    stub.verify_script = lambda row: {"reward": float(row["_ng_task_index"] == 3)}
    reverified(stub, folder.output, again, "--limit", "2")
    answer = reverified(stub, folder.output, again, "--resume")

    assert "0.250 ± 0.250 over 4 tasks, 95 % interval" in answer.out
    assert "4/4 finished (100%) · mean reward 0.250 over 4" in answer.err
