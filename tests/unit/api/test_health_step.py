"""What a run says of its records' health once it is over."""

import json

import pytest
from aiohttp import web

from rollbook.cli.eval_health_check import command
from run_folder import RunFolder, said
from stub import adding, lines, serving

IDLE = {"reward": 0.0, "response": {"output": [], "usage": {"input_tokens": 0, "output_tokens": 0}}}
WRONG = {"reward": 0.0, "response": {"output": [{"type": "message"}], "usage": {"input_tokens": 9, "output_tokens": 2}}}


def answering(reply):
    return lambda row: web.json_response(row | reply)


def run_of(folder, reply, *flags, count=3):
    with serving(answering(reply)) as stub:
        return RunFolder(folder).asks(adding(count)).run(stub, *flags)


def summary(folder):
    return json.loads((folder / "out" / "quality_summary.json").read_bytes())["run"]


def test_a_run_checks_its_records_and_names_the_summary(tmp_path):
    answer = run_of(tmp_path, WRONG)
    assert "Rollout health: 3 checked, 0 healthy, 0 unhealthy, 3 unobserved" in answer.err
    assert "quality_summary.json" in answer.out
    assert (answer.code, summary(tmp_path)["expected"], summary(tmp_path)["missing"]) == (0, 3, 0)


@pytest.mark.parametrize("flag", ["--no-health-check", "--disable-aggregation"])
def test_a_run_that_is_told_not_to_checks_nothing(tmp_path, flag):
    answer = run_of(tmp_path, WRONG, flag)
    assert "Rollout health" not in answer.err
    assert not (tmp_path / "out" / "quality_summary.json").exists()


def test_a_run_leaves_out_the_checks_that_it_is_told_to(tmp_path):
    run_of(tmp_path, WRONG, "--health-check-ignore", "agent_turn_hollow", "--health-check-workers", "2")
    assert summary(tmp_path)["ignored_checks"] == ["agent_turn_hollow"]


@pytest.mark.parametrize(("reply", "found"), [(IDLE, ["run_model_never_used"]), (WRONG, [])])
def test_rc_72_a_run_in_which_no_rollout_used_the_model_is_flagged_and_real_zeros_are_not(tmp_path, reply, found):
    answer = run_of(tmp_path, reply)
    assert [finding["check"] for finding in summary(tmp_path)["findings"]] == found
    assert answer.text.count("no rollout used the model") == len(found)


def test_a_report_that_cannot_be_written_costs_the_run_nothing(tmp_path):
    (tmp_path / "out" / "rollout_verdicts.jsonl" / "in the way").mkdir(parents=True)
    answer = run_of(tmp_path, WRONG)
    assert "the health check failed" in answer.err
    assert answer.code == 0


def test_a_run_with_more_unhealthy_records_than_its_limit_ends_with_4_and_keeps_its_table(tmp_path):
    unwell = WRONG | {"ng_trajectory": "none"}
    answer = run_of(tmp_path, unwell, "+max_unhealthy_fraction=0.5")
    assert answer.code == 4, answer.text
    assert "EVAL FAILED: 3 of 3 records are unhealthy" in answer.err
    assert "Files" in answer.out
    assert "no headline\n  the run is rejected: 3 of 3 records are unhealthy" in answer.out


def never_started(task):
    """The sidecar's row of a rollout for which the budget had no time left."""
    marks = ("_ng_no_persist", "_ng_dispatch_drained", "_ng_omitted_rollout")
    return identity(task) | dict.fromkeys(marks, True) | {"_ng_failure_class": "cancelled"}


def identity(task):
    return {"_ng_task_index": task, "_ng_rollout_index": 0, "agent_ref": {"name": "a"}}


@pytest.mark.parametrize("recorded", [True, False])
def test_what_a_budget_had_no_time_for_is_missing_and_did_not_fail(tmp_path, recorded):
    plan = [identity(task) | {"responses_create_params": {"input": "x"}} for task in range(3)]
    (tmp_path / "rollouts_materialized_inputs.jsonl").write_bytes(lines(plan))
    (tmp_path / "rollouts.jsonl").write_bytes(lines([identity(0) | WRONG]))
    (tmp_path / "rollouts_failures.jsonl").write_bytes(lines([never_started(1), never_started(2)] if recorded else []))
    answer = said(["eval", "health-check", str(tmp_path), "--max-missing", "0.5", "--json"])
    told = json.loads(answer.out)["run"]
    assert (told["expected"], told["failed"], told["missing"]) == (3, 0, 2)
    assert (answer.code, told["findings"][0]["detail"]["limit"]) == (1, "max_missing_fraction")


def test_the_command_checks_a_run_by_its_folder_its_output_or_a_companion(tmp_path):
    run_of(tmp_path, WRONG, "--no-health-check")
    for name in ("out", "out/r.jsonl", "out/r_failures.jsonl"):
        answer = said(["eval", "health-check", str(tmp_path / name)])
        assert answer.out.startswith("Rollout health: 3 checked")


def test_the_command_prefers_the_usual_name_in_a_folder_and_takes_any_that_it_is_given(tmp_path):
    (tmp_path / "rollouts.jsonl").write_text('{"_ng_task_index":0}\n')
    (tmp_path / "other.jsonl").write_text('{"_ng_task_index":0}\n{"_ng_task_index":1}\n')
    assert "1 checked" in said(["eval", "health-check", str(tmp_path)]).out
    assert "2 checked" in said(["eval", "health-check", str(tmp_path), "--rollouts-file", "other.jsonl"]).out


@pytest.mark.parametrize(
    ("flags", "code"),
    [
        ([], 0),
        (["--max-unhealthy", "1"], 0),
        (["--max-unhealthy", "0.5"], 1),
        (["--ignore-checks", "record_unreadable", "--max-unhealthy", "0"], 0),
        (["--ignore", "nothing_of_ours"], 1),
        (["--workers", "0"], 2),
        (["+key=value"], 2),
        (["--rollouts-file", "absent.jsonl"], 2),
    ],
)
def test_the_command_ends_with_what_its_limits_say(tmp_path, flags, code):
    (tmp_path / "rollouts.jsonl").write_text("broken\n")
    assert said(["eval", "health-check", str(tmp_path), *flags]).code == code


def test_in_json_the_summary_alone_is_printed(tmp_path):
    (tmp_path / "rollouts.jsonl").write_text("broken\n")
    answer = said(["eval", "health-check", str(tmp_path), "--json"])
    saved = json.loads((tmp_path / "quality_summary.json").read_bytes())
    assert json.loads(answer.out) == {"schema_version": 1} | saved
    assert command.name == "health-check"
