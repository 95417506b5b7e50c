"""Real runs compared: collected, shuffled, interrupted by failures, resumed."""

import json

import pytest

from run_folder import SERVER_ERROR, RunFolder, json_reply, said
from stub import adding, serving

TASKS = 8


def number_of(row):
    return int(row["responses_create_params"]["input"].split()[1])


def rewarding(reward_of):
    return lambda row: json_reply(reward=reward_of(number_of(row)), response={"output": []})(row)


def compared(ours, theirs, *flags, verb="eval"):
    runs = ["--baseline", str(ours.output), "--candidates", str(theirs.output)]
    answer = said([verb, "compare", *runs, *flags, "--json"])
    return answer.code, json.loads(answer.out)


@pytest.fixture
def runs(tmp_path):
    rows = adding(TASKS)
    return RunFolder(tmp_path / "a").asks(rows), RunFolder(tmp_path / "b").asks(rows[::-1])


def test_two_runs_of_a_shuffled_dataset_are_compared_task_by_task(runs):
    ours, theirs = runs
    with serving(rewarding(lambda _: 1.0)) as stub:
        ours.run(stub, "--num-repeats", "2")
        stub.script = rewarding(lambda number: float(number >= 2))
        theirs.run(stub, "--num-repeats", "3", "--temperature", "0.5")
    code, document = compared(ours, theirs)
    (rows,) = document["rows"]
    assert code == 0
    assert rows["paired"]["by"] == {"content": TASKS}
    assert rows["difference"] == -0.25
    assert {change["baseline_task"] for change in rows["flips"]["listed"]} == {0, 1}
    assert {change["candidate_task"] for change in rows["flips"]["listed"]} == {TASKS - 1, TASKS - 2}
    (comparison,) = document["comparisons"]
    assert [metric["delta"] for metric in comparison["metrics"] if metric["metric"] == "mean/reward"] == [-0.25]


def test_of_damaged_files_nothing_is_concluded_and_a_gate_is_inconclusive(runs, tmp_path):
    """RC-21."""
    ours, theirs = runs
    gate = tmp_path / "policy.yaml"
    gate.write_text("max_drop: 0.1\nassume_complete: true\non_inconclusive: warn\n")
    with serving(rewarding(lambda _: 1.0)) as stub:
        ours.run(stub)
        stub.script = rewarding(lambda _: 0.0)
        theirs.run(stub)
    plan = theirs.output.with_name("r_materialized_inputs.jsonl")
    plan.write_bytes(plan.read_bytes().replace(b"1", b"7", 1))
    code, document = compared(ours, theirs, "--gate", str(gate), verb="dev")
    assert (code, document["gate"]["ruling"]) == (7, "INCONCLUSIVE")
    (rows,) = document["rows"]
    assert rows["verdict"] == "inconclusive because of damage"
    assert rows["lacking"] == ["candidate: its files are damaged; gym eval status names each place"]


def test_a_run_whose_plan_is_gone_is_compared_by_what_its_results_echo(runs, tmp_path):
    """The prompt of a result is the server's echo, with defaults filled in."""
    ours, theirs = runs
    filled = {"tool_choice": "auto", "tools": [], "parallel_tool_calls": True, "metadata": None, "truncation": None}

    def echoing(row):
        params = row["responses_create_params"] | filled
        return json_reply(reward=1.0, response={"output": []}, responses_create_params=params)(row)

    with serving(echoing) as stub:
        ours.run(stub)
        theirs.run(stub)
    alone = tmp_path / "alone" / "rollouts.jsonl"
    alone.parent.mkdir()
    theirs.output = theirs.output.rename(alone)
    code, document = compared(ours, theirs, "--assume-complete")
    assert code == 0
    assert document["rows"][0]["paired"]["by"] == {"prompt": TASKS}
    assert document["rows"][0]["verdict"] == "no difference shown"


def test_a_candidate_whose_failures_are_made_good_by_a_resume_is_compared_anew(runs, tmp_path):
    ours, theirs = runs
    gate = tmp_path / "policy.yaml"
    gate.write_text("max_drop: 0.1\n")
    with serving(rewarding(lambda _: 1.0)) as stub:
        ours.run(stub)
        stub.script = lambda row: SERVER_ERROR(row) if number_of(row) < 3 else rewarding(lambda _: 1.0)(row)
        theirs.run(stub)
        code, document = compared(ours, theirs, "--gate", str(gate), verb="dev")
        assert (code, document["gate"]["ruling"]) == (7, "INCONCLUSIVE")
        assert document["rows"][0]["sides"]["candidate"]["states"] == {"scored": 5, "failed (agent_run_error)": 3}
        stub.script = rewarding(lambda _: 1.0)
        theirs.resume(stub)
    code, document = compared(ours, theirs, "--gate", str(gate), verb="dev")
    assert (code, document["gate"]["ruling"]) == (0, "PASS")
