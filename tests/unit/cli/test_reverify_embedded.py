"""Shelf servers in this process, judged again: multiple choice, and mathematics whose judge was down."""

import json

import pytest

from run_folder import rows_of, said

MCQA = ("--resources-server", "mcqa", "--model-type", "simulated_model")
MATH = ("--resources-server", "math_with_judge", "--model-type", "simulated_model")
WRONG = "++policy_model.responses_api_models.simulated_model.policy={p_correct: 0, wrong: 1, malformed: 0, refuses: 0}"
SETTINGS = "math_with_judge.resources_servers.math_with_judge"
JUDGE = """
judge_model:
  responses_api_models:
    simulated_model:
      entrypoint: app.py
      seed: 1
      answers_fpath: null
      policy: {{p_correct: 1, wrong: 0, malformed: 0, refuses: 0}}
      latency: {{distribution: constant, mean_seconds: 0}}
      faults: {{server_error: {broken}}}
"""


def told(*command):
    answer = said([*command, "--json"])
    assert answer.code in {0, 3}, answer.text
    return json.loads(answer.out)


@pytest.fixture(scope="module")
def mcqa(tmp_path_factory):
    output = tmp_path_factory.mktemp("mcqa") / "r.jsonl"
    told("eval", "run", *MCQA, "--num-repeats", "2", "-o", str(output))
    return output


def test_the_verifier_that_gave_the_rewards_gives_them_again(mcqa, tmp_path):
    again = tmp_path / "v.jsonl"
    report = told("eval", "reverify", *MCQA, "--rollouts", str(mcqa), "-o", str(again))
    assert report["delta"]["judged_both_times"] == len(rows_of(mcqa)) > 0
    assert report["delta"]["changed"] == 0
    named = {(row["_ng_task_index"], row["_ng_rollout_index"]): row["reward"] for row in rows_of(mcqa)}
    assert {(row["_ng_task_index"], row["_ng_rollout_index"]): row["reward"] for row in rows_of(again)} == named


def test_its_metrics_are_those_of_the_run(mcqa, tmp_path):
    again = tmp_path / "v.jsonl"
    (entry,) = told("eval", "reverify", *MCQA, "--rollouts", str(mcqa), "-o", str(again))["metrics"]
    (before,) = json.loads(mcqa.with_name("r_aggregate_metrics.json").read_bytes())
    assert entry["key_metrics"]["mean/reward"] == before["key_metrics"]["mean/reward"]


def test_a_configuration_of_a_resources_server_alone_is_enough(mcqa, tmp_path):
    config = tmp_path / "alone.yaml"
    config.write_text("mcqa:\n  resources_servers:\n    mcqa: {entrypoint: app.py, domain: knowledge}\n")
    answer = said(
        ["eval", "reverify", "--config", str(config), "--rollouts", str(mcqa), "-o", str(tmp_path / "v.jsonl")]
    )
    assert answer.code == 0, answer.text
    assert "its only resources server, judges everything" in answer.err


def test_the_model_of_an_agent_need_not_be_there(mcqa, tmp_path):
    answer = said(["eval", "reverify", *MCQA[:2], "--rollouts", str(mcqa), "-o", str(tmp_path / "v.jsonl")])
    assert answer.code == 0, answer.text
    assert len(rows_of(tmp_path / "v.jsonl")) == len(rows_of(mcqa))


def test_the_model_of_a_judge_has_to_be_there(mcqa, tmp_path):
    asks = (f"++{SETTINGS}.should_use_judge=true", f"++{SETTINGS}.judge_model_server.name=judge_model")
    answer = said(["eval", "reverify", *MATH[:2], "--rollouts", str(mcqa), "-o", str(tmp_path / "v.jsonl"), *asks])
    assert answer.code == 1
    assert "refers to `judge_model`, which is no instance" in " ".join(answer.text.split())


def test_what_a_judge_that_was_down_owes_is_judged_once_it_is_up(tmp_path):
    output, config = tmp_path / "r.jsonl", tmp_path / "judge.yaml"
    asks = (f"++{SETTINGS}.should_use_judge=true", f"++{SETTINGS}.judge_model_server.name=judge_model", WRONG)
    config.write_text(JUDGE.format(broken=1))
    run = told(
        "eval", "run", "--config", str(config), *MATH, "--limit", "2", "-o", str(output), "--retry-for", "0", *asks
    )
    assert run["coverage"]["held"] == 2
    config.write_text(JUDGE.format(broken=0))
    judged = ("--rollouts", str(output), "--judge-failed-only", "--append")
    report = told("eval", "reverify", "--config", str(config), *MATH, *judged, *asks)
    assert (report["selected"], report["left"], report["delta"]["newly_scored"]) == (2, 0, 2)
    assert len(rows_of(output)) == 2
    (status,) = told("eval", "status", str(output))["runs"]
    assert (status["coverage"]["scored"], status["exit_code"]) == (2, 0)
