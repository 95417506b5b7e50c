"""What `gym eval compare` says of data that cannot show a difference, or not all of it."""

import json

import pytest

from compare_commands import aggregated, dev, evaluated, policy, report
from compared_run import lines, task, write
from run_folder import rows_of


def written(folder, rewards, **more):
    return write(folder, [task(number, [reward], **more) for number, reward in enumerate(rewards)])


def test_a_run_without_a_plan_has_no_verdict_and_opens_no_gate_unless_it_is_said_to_be_complete(tmp_path):
    ours = written(tmp_path / "a", [1.0] * 20)
    theirs = write(tmp_path / "b", [task(number, [1.0]) for number in range(20)], plan=False)
    gate = policy(tmp_path, "max_drop: 0.02")
    answer = dev((ours, theirs), *gate)
    assert answer.code == 7
    assert "inconclusive because of coverage" in answer.out
    assert "20 rollouts scored, of an unknown number" in answer.out
    assert "--assume-complete takes what is there" in answer.out
    assert "100.0 %" not in answer.out.partition("candidate: 20")[2]
    assert report(theirs.parent)["rows"][0]["sides"]["candidate"]["coverage"] is None
    assert "no difference shown" in dev((ours, theirs), "--assume-complete").out
    complete = dev((ours, theirs), *policy(tmp_path, "max_drop: 0.02\nassume_complete: true"))
    assert (complete.code, "no difference shown" in complete.out) == (0, True)


def test_tasks_whose_expected_answer_changed_pass_only_with_consent(tmp_path):
    runs = (
        written(tmp_path / "a", [1.0] * 6, expected_answer="x"),
        written(tmp_path / "b", [1.0] * 6, expected_answer="y"),
    )
    answer = dev(runs, *policy(tmp_path, "max_drop: 0.02"))
    assert (answer.code, "6 pairs of tasks do not say the same" in " ".join(answer.out.split())) == (7, True)
    assert dev(runs, *policy(tmp_path, "max_drop: 0.02\nallow_changed_tasks: true")).code == 0


@pytest.mark.parametrize(
    ("rewards", "others", "told"),
    [
        ([0.0] * 4, [1.0] * 4, "4 tasks can show nothing at 0.05, whatever their repeats; 6 tasks can"),
        ([1.0] * 20, [1.0] * 20, "the tasks differ all alike"),
        ([1.0, 1.0, 0.0] * 2, [1.0, 0.0, 1.0] * 2, "not even the largest possible difference"),
        ([0.5] * 10, [0.4] * 9 + [1.0], "9 fell, 1 rose, sign test p = 0.021, which decides nothing"),
    ],
)
def test_what_the_data_cannot_show_is_said(tmp_path, rewards, others, told):
    answer = dev((written(tmp_path / "a", rewards), written(tmp_path / "b", others)))
    assert told in " ".join(answer.out.split())
    assert "difference of 0.000 would" not in " ".join(answer.out.split())
    assert "Verdict    no difference shown" in answer.out


def test_rewards_near_the_largest_number_are_compared(tmp_path):
    runs = written(tmp_path / "a", [1.5e308] * 8), written(tmp_path / "b", [-1.5e308] * 8)
    answer = dev(runs, *policy(tmp_path, "max_drop: 0.1"))
    assert (answer.code, "Verdict    worse" in answer.out) == (6, True)
    assert "larger than any number" in answer.out
    document = json.loads(dev(runs, "--json").out, parse_constant=pytest.fail)
    assert (document["rows"][0]["difference"], document["rows"][0]["baseline_mean"]) == (None, 1.5e308)


def by_repeats(folder, *repeats):
    """Write a run of 20 tasks of which so many are right in each repeat, and its metrics."""
    output = write(folder, [task(number, [float(number < right) for right in repeats]) for number in range(20)])
    aggregated(output)
    return output


METRIC_TIER = "tiers:\n  - {name: m, metric: mean/reward, max_drop: 0.02}\nrequire_significance: true\n"


def test_a_metric_is_held_to_the_level_of_the_policy_and_of_all_candidates(tmp_path):
    ours, theirs = by_repeats(tmp_path / "a", 14, 15, 16), by_repeats(tmp_path / "b", 11, 12, 13)
    assert evaluated((ours, theirs), *policy(tmp_path, METRIC_TIER)).code == 6
    assert evaluated((ours, theirs), *policy(tmp_path, f"{METRIC_TIER}alpha: 0.001")).code == 7
    more = [flag for name in "cde" for flag in ("--candidates", str(by_repeats(tmp_path / name, 11, 12, 13)))]
    assert evaluated((ours, theirs), *more, *policy(tmp_path, METRIC_TIER)).code == 7


def test_a_metric_of_an_agent_that_is_nowhere_is_told_with_the_agent_that_is_there(tmp_path):
    runs = by_repeats(tmp_path / "a", 14, 15), by_repeats(tmp_path / "b", 14, 15)
    tier = "tiers:\n  - {name: m, metric: mean/reward, agent: AGENT, max_drop: 0.9}\n"
    assert evaluated(runs, *policy(tmp_path, tier.replace("AGENT", "solver"))).code == 0
    answer = evaluated(runs, *policy(tmp_path, tier.replace("AGENT", "slover")))
    said = "no metrics are of the agent slover; did you mean solver?"
    assert (answer.code, said in " ".join(answer.out.split())) == (7, True), answer.out


def test_a_zero_that_a_producer_marked_is_said_and_falls(tmp_path):
    ours = written(tmp_path / "a", [1.0] * 20)
    theirs = written(tmp_path / "b", [1.0] * 19 + ["timeout_exceeded"])
    failures = theirs.with_name("rollouts_failures.jsonl")
    lines(failures, [row | {"_ng_failure_counts_as_zero": True} for row in rows_of(failures)])
    answer = dev((ours, theirs), *policy(tmp_path, "max_drop: 0.02"))
    assert (answer.code, "19 of 20 rollouts scored, 1 counts as zero (100.0 %)" in answer.out) == (6, True)
    assert "max_drop: 0.050, limit 0.020" in answer.out
    (rows,) = report(theirs.parent)["rows"]
    assert rows["sides"]["candidate"]["counted"] == 1


def test_a_metric_covers_no_more_than_the_rows_of_a_run_without_a_plan(tmp_path):
    ours, theirs = by_repeats(tmp_path / "a", 15, 16), by_repeats(tmp_path / "b", 15, 16)
    theirs.with_name("rollouts_materialized_inputs.jsonl").unlink()
    tier = "tiers:\n  - {name: m, metric: mean/reward, max_drop: 0.02}\n"
    assert evaluated((ours, theirs), *policy(tmp_path, tier)).code == 7
    assert evaluated((ours, theirs), *policy(tmp_path, f"{tier}assume_complete: true")).code == 0


def test_the_level_of_the_command_line_moves_the_verdict_and_no_gate(tmp_path):
    runs = written(tmp_path / "a", [1.0] * 40), written(tmp_path / "b", [1.0] * 40)
    gate = policy(tmp_path, "max_drop: 0.1\nnon_inferiority: true")
    assert dev(runs, *gate).code == 0
    assert dev(runs, *gate, "--alpha", "0.001").code == 0
    assert dev(runs, *policy(tmp_path, "max_drop: 0.1\nnon_inferiority: true\nalpha: 0.001")).code == 7
