"""Profiles of saved runs: what is measured, what is refused, and what a condition keeps."""

import json
from collections import Counter

import pytest

from rollbook.errors import LedgerError, OutputExistsError
from rollbook.ledger.paths import (
    agent_metrics_path_for,
    materialized_path_for,
    repeat_level_metrics_path_for,
    reward_profiling_path_for,
)
from rollbook.report.profile_text import profile_json, profile_text
from rollbook.scoring.aggregate import compute_aggregate_metrics
from rollbook.verbs.profile import profile
from rollbook.verbs.profile_run import ProfileError, run_at, run_of
from unit.verbs.profiled import lines_of, planned, row, write_run

REWARDS = {(0, 0): 1.0, (0, 1): 0.0, (1, 0): 1.0, (1, 1): 1.0}
PLAN = [planned(*key) for key in REWARDS]


def profiled(output, **asked):
    return profile([run_at(output)], output, **asked)


def entries(output):
    return lines_of(reward_profiling_path_for(output))


def agents(output):
    return json.loads(agent_metrics_path_for(output).read_text())


def test_the_metrics_are_those_of_an_aggregation_with_the_planned_rows_as_samples(tmp_path):
    rows = [row(*key, reward, response={"usage": {"input_tokens": 3 + key[0]}}) for key, reward in REWARDS.items()]
    output = write_run(tmp_path / "r.jsonl", PLAN, reversed(rows))
    profiled(output)

    metrics = compute_aggregate_metrics(rows)
    assert agents(output) == [metrics.agent_metrics | {"agent_ref": {"name": "a"}}]
    assert metrics.agent_metrics["mean/reward"] == 0.75
    assert json.loads(repeat_level_metrics_path_for(output).read_text()) == [
        entry | {"agent_ref": {"name": "a"}} for entry in metrics.repeat_level_metrics
    ]
    told = entries(output)
    assert [entry.pop("pass_at_k") for entry in told] == [{"1": 0.5, "2": 1.0}, {"1": 1.0, "2": 1.0}]
    samples = [entry.pop("sample") for entry in told]
    assert samples == [{k: v for k, v in plan.items() if not k.startswith("_ng_")} for plan in (PLAN[0], PLAN[2])]
    assert told == [{k: v for k, v in entry.items() if k != "sample"} for entry in metrics.group_level_metrics]


def test_a_masked_result_and_its_planned_rollout_are_left_out_and_counted(tmp_path):
    rows = [row(*key, reward, mask_sample=key == (1, 1)) for key, reward in REWARDS.items()]
    output = write_run(tmp_path / "r.jsonl", PLAN, rows)
    [totals] = profiled(output).labels

    [agent] = agents(output)
    assert agent["mean/reward"] == pytest.approx(2 / 3)
    assert {k: v for k, v in agent.items() if k.startswith("coverage/")} == {
        "coverage/measured_rollouts": 3,
        "coverage/masked_rollouts": 1,
        "coverage/measured_tasks": 2,
        "coverage/fully_masked_tasks": 0,
    }
    assert [(e["num_rollouts"], e["expected_num_rollouts"]) for e in entries(output)] == [(2, 2), (1, 1)]
    assert (totals.complete, totals.masked, totals.scored) == (2, 1, 3)


def test_a_label_of_which_everything_is_masked_stays_with_its_coverage_alone(tmp_path):
    rows = [row(0, 0, 1.0), row(1, 0, 1.0, agent_ref={"name": "b"}, mask_sample=True)]
    output = write_run(tmp_path / "r.jsonl", [planned(0, 0), planned(1, 0, agent_ref={"name": "b"})], rows)
    profiled(output)

    assert agents(output)[1] == {
        "coverage/measured_rollouts": 0,
        "coverage/masked_rollouts": 1,
        "coverage/measured_tasks": 0,
        "coverage/fully_masked_tasks": 1,
        "agent_ref": {"name": "b"},
    }


@pytest.mark.parametrize(
    ("plan", "results", "said"),
    [
        (PLAN[:3], REWARDS, r"rollout 1-1 is not among the inputs"),
        (PLAN, list(REWARDS)[:2], r"2 of 4 planned rollouts have no result \(1-0, 1-1\)"),
        (PLAN, [*REWARDS, (0, 1)], r"r\.jsonl:5: the rollout of .*r\.jsonl:2 is there twice"),
    ],
)
def test_inputs_and_rollouts_that_do_not_belong_together_are_refused_and_nothing_is_written(
    tmp_path, plan, results, said
):
    output = write_run(tmp_path / "r.jsonl", plan, [row(*key, 1.0) for key in results])

    with pytest.raises(ProfileError, match=said) as caught:
        profiled(output)
    assert isinstance(caught.value, ValueError)
    assert not reward_profiling_path_for(output).exists()


def test_partial_rollouts_are_profiled_when_it_is_allowed_and_what_is_missing_is_told(tmp_path):
    output = write_run(tmp_path / "r.jsonl", [*PLAN, planned(2, 0)], [row(0, 0, 1.0), row(1, 0, 1.0), row(1, 1, 0.0)])
    [totals] = profiled(output, allow_partial_rollouts=True).labels

    assert (totals.complete, totals.partial, totals.missing, totals.found, totals.planned) == (1, 1, 1, 3, 5)
    assert [(e["num_rollouts"], e["expected_num_rollouts"], e["missing_num_rollouts"]) for e in entries(output)] == [
        *((1, 2, 1), (2, 2, 0))
    ]


def test_a_result_that_a_later_attempt_superseded_is_no_second_sample(tmp_path):
    named = {"_ng_run_id": "r"}
    rows = [row(0, 0, 0.0, **named), row(0, 0, 1.0, _ng_attempt_index=1, **named)]
    output = write_run(tmp_path / "r.jsonl", [planned(0, 0)], rows)
    profiled(output)

    assert [entry["mean/reward"] for entry in entries(output)] == [1.0]


def test_under_fan_out_profiles_are_by_task_and_label_in_the_order_of_tasks(tmp_path):
    keys = [(task, rollout, "ab"[rollout]) for task in range(3) for rollout in range(2)]
    plan = [planned(t, r, agent_ref={"name": name}) for t, r, name in keys]
    rows = [row(t, r, float(r), agent_ref={"name": name}) for t, r, name in reversed(keys)]
    output = write_run(tmp_path / "r.jsonl", plan, rows)
    profiled(output)

    assert [(e["_ng_task_index"], e["agent_ref"]["name"], e["mean/reward"]) for e in entries(output)] == [
        *((0, "a", 0.0), (0, "b", 1.0), (1, "a", 0.0), (1, "b", 1.0), (2, "a", 0.0), (2, "b", 1.0))
    ]
    assert [(one["agent_ref"]["name"], one["mean/reward"]) for one in agents(output)] == [("a", 0.0), ("b", 1.0)]


def test_two_agents_of_different_tasks_share_no_entry_and_entries_name_none(tmp_path):
    plan = [planned(0, 0), planned(1, 0, agent_ref={"name": "b"})]
    rows = [row(0, 0, 1.0), row(1, 0, 0.0, agent_ref={"name": "b"})]
    output = write_run(tmp_path / "r.jsonl", plan, rows)
    profiled(output)

    assert ["agent_ref" in entry for entry in entries(output)] == [False, False]
    assert len(agents(output)) == 2


def test_servers_that_front_one_agent_are_the_labels(tmp_path):
    rows = [row(0, number, float(number), _ng_environment_server=f"s{number}") for number in range(2)]
    output = write_run(tmp_path / "r.jsonl", [planned(0, 0), planned(0, 1)], rows)
    profiled(output)

    assert [one["agent_ref"]["name"] for one in agents(output)] == ["s0", "s1"]


def test_one_rollout_is_one_sample_whatever_is_inside(tmp_path):
    turns = {"ng_trajectory": {"turns": [{"reward": 0}] * 30}, "turns": [0] * 30}
    rows = [row(0, 0, 0.0, **turns), row(0, 1, 1.0), row(0, 2, 1.0)]
    output = write_run(tmp_path / "r.jsonl", [planned(0, number) for number in range(3)], rows)
    [totals] = profiled(output).labels

    assert totals.mean_reward == pytest.approx(2 / 3)
    assert totals.pass_rates()[1][0] == pytest.approx(2 / 3)


@pytest.fixture
def hard_and_easy(tmp_path):
    """Return a run of tasks with 4, 4, 3 and 0 samples: 0 of 4 right, 2 of 4, 3 of 3, and a task without any."""
    samples = {0: [0, 0, 0, 0], 1: [1, 0, 0, 1], 2: [1, 1, 1], 3: []}
    plan = [planned(task, number, _ng_environment_server="s") for task in samples for number in range(4)]
    rows = [row(task, n, float(reward)) for task, rewards in samples.items() for n, reward in enumerate(rewards)]
    return write_run(tmp_path / "r.jsonl", plan, rows)


def test_a_condition_keeps_tasks_and_tells_what_it_could_not_decide(hard_and_easy, tmp_path):
    export = tmp_path / "kept.jsonl"
    came_to = profiled(hard_and_easy, keep="pass@4>=0.5", export=export, allow_partial_rollouts=True)

    assert (came_to.kept.kept, came_to.kept.dropped) == (1, 1)
    assert came_to.kept.undefined == Counter({"pass@4 of fewer than 4 rollouts": 1, "no rollout of it is scored": 1})
    assert came_to.kept.tasks == 4
    assert lines_of(export) == [
        {
            "responses_create_params": {"input": "question 1"},
            "expected_answer": "1",
            "agent_ref": {"name": "a"},
        }
    ]


def test_pass_at_k_tells_how_many_tasks_have_too_few_samples(hard_and_easy):
    [totals] = profiled(hard_and_easy, allow_partial_rollouts=True).labels

    assert totals.pass_rates() == {1: (pytest.approx(0.5), 3), 2: (pytest.approx(11 / 18), 3), 4: (0.5, 2)}


def test_a_mean_stands_beside_its_clustered_error_and_a_single_task_has_none(tmp_path):
    plan = [planned(task, rollout) for task in range(3) for rollout in range(2)]
    results = [row(task, rollout, reward=float(task > 0)) for task in range(3) for rollout in range(2)]
    found = profiled(write_run(tmp_path / "three" / "r.jsonl", plan, results))
    assert found.labels[0].headline().observed.standard_error == pytest.approx(1 / 3)
    assert "mean reward 0.6667 ± 0.3333 (clustered by task, 95 % interval [" in profile_text(found)
    assert "pass@1 0.6667 ± 0.3333 over 3 tasks" in profile_text(found)
    assert "the interval reaches beyond 0 to 1, where every reward lies" in profile_text(found)
    assert profile_json(found)["agents"][0]["interval_beyond_rewards"] is True
    alone = profiled(write_run(tmp_path / "one" / "r.jsonl", plan[:2], results[:2]))
    assert "mean reward 0.0000, 2 scored" in profile_text(alone)
    assert "pass@1 0.0000 over 1 tasks" in profile_text(alone)


def test_a_condition_may_speak_of_what_is_missing(hard_and_easy):
    came_to = profiled(hard_and_easy, keep="missing > 0 and n > 0", allow_partial_rollouts=True)

    assert (came_to.kept.kept, came_to.kept.dropped, came_to.kept.undefined.total()) == (1, 3, 0)


def test_a_task_under_fan_out_is_kept_once_and_only_if_the_condition_holds_under_each_label(tmp_path):
    rewards = {(0, 0): ("a", 1.0), (0, 1): ("b", 1.0), (1, 0): ("a", 1.0), (1, 1): ("b", 0.0)}
    plan = [planned(*key, agent_ref={"name": name}) for key, (name, _) in rewards.items()]
    rows = [row(*key, reward, agent_ref={"name": name}) for key, (name, reward) in rewards.items()]
    output = write_run(tmp_path / "r.jsonl", plan, rows)
    came_to = profiled(output, keep="mean == 1", export=tmp_path / "kept.jsonl")

    assert (came_to.kept.kept, came_to.kept.dropped) == (1, 1)
    assert [kept["expected_answer"] for kept in lines_of(tmp_path / "kept.jsonl")] == ["0"]


def test_a_run_without_a_plan_is_profiled_by_what_is_at_hand_and_nothing_can_be_exported(tmp_path):
    output = write_run(tmp_path / "r.jsonl", None, [row(*key, reward, hint="h") for key, reward in REWARDS.items()])
    came_to = profiled(output)

    assert not came_to.has_plan
    assert [entry["sample"]["hint"] for entry in entries(output)] == ["h", "h"]
    with pytest.raises(ProfileError, match="materialized inputs"):
        profiled(output, keep="mean>0", export=tmp_path / "kept.jsonl")


def test_inputs_and_rollouts_may_lie_anywhere(tmp_path):
    output = write_run(tmp_path / "r.jsonl", PLAN, [row(*key, reward) for key, reward in REWARDS.items()])
    inputs = materialized_path_for(output).rename(tmp_path / "elsewhere.jsonl")
    came_to = profile([run_of(inputs, output)], output)

    assert came_to.has_plan
    assert entries(output)[0]["sample"]["expected_answer"] == "0"
    for missing in ((tmp_path / "no.jsonl", output), (inputs, tmp_path / "no.jsonl")):
        with pytest.raises(ProfileError, match=r"no\.jsonl: no such file"):
            run_of(*missing)


def test_shards_of_one_run_are_the_run(tmp_path):
    whole = write_run(tmp_path / "whole" / "r.jsonl", PLAN, [row(*key, reward) for key, reward in REWARDS.items()])
    profiled(whole)
    parts = [
        write_run(tmp_path / f"{n}" / "r.jsonl", [planned(*key)], [row(*key, reward)])
        for n, (key, reward) in enumerate(reversed(REWARDS.items()))
    ]
    profile([run_at(part) for part in parts], tmp_path / "all.jsonl")

    assert entries(tmp_path / "all.jsonl") == entries(whole)
    assert agents(tmp_path / "all.jsonl") == agents(whole)


def test_runs_that_number_their_tasks_from_0_each_are_told_apart_by_label_or_refused(tmp_path):
    a = write_run(tmp_path / "a" / "r.jsonl", [planned(0, 0)], [row(0, 0, 1.0)])
    b_ref = {"agent_ref": {"name": "b"}}
    b = write_run(tmp_path / "b" / "r.jsonl", [planned(0, 0, expected_answer="b", **b_ref)], [row(0, 0, 0.0, **b_ref)])
    export = tmp_path / "kept.jsonl"
    profile([run_at(a), run_at(b)], tmp_path / "all.jsonl", keep="mean==0", export=export)

    told = [(e["agent_ref"]["name"], e["sample"]["expected_answer"]) for e in entries(tmp_path / "all.jsonl")]
    assert told == [("a", "0"), ("b", "b")]
    assert [kept["expected_answer"] for kept in lines_of(export)] == ["b"]
    again = write_run(tmp_path / "c" / "r.jsonl", [planned(0, 0)], [row(0, 0, 1.0)])
    with pytest.raises(ProfileError, match=r"rollout 0-0 is in .*a/r\.jsonl and in .*c/r\.jsonl"):
        profile([run_at(a), run_at(again)], tmp_path / "all.jsonl")


def test_a_damaged_line_is_told_and_its_rollout_is_missing(tmp_path):
    output = write_run(tmp_path / "r.jsonl", PLAN, [row(*key, reward) for key, reward in REWARDS.items()])
    output.write_text(output.read_text().replace('"_ng_task_index": 1, "_ng_rollout_index": 1', '"x": 1'))

    with pytest.raises(ProfileError, match="1-1"):
        profiled(output)
    assert any("r.jsonl:4" in said for said in profiled(output, allow_partial_rollouts=True).damage)


def test_the_order_of_rows_and_of_the_plan_changes_nothing(tmp_path):
    rows = [row(*key, reward) for key, reward in REWARDS.items()]
    orders = [(PLAN, rows), (PLAN[::-1], rows), ([PLAN[0], PLAN[2], PLAN[1], PLAN[3]], rows[::-1])]
    told = []
    for number, (plan, results) in enumerate(orders):
        output = write_run(tmp_path / str(number) / "r.jsonl", plan, results)
        profiled(output)
        told.append((agents(output), [{**e, "sample": None} for e in entries(output)]))
    assert told[0] == told[1] == told[2]


def test_a_shard_that_is_missing_or_short_is_no_whole_run(tmp_path):
    """Three shards of four rollouts: one lost its results, another one two of them."""
    shards = []
    for shard, kept in enumerate((4, 2, 0)):
        keys = [(shard, number) for number in range(4)]
        rows = [row(*key, 1.0) for key in keys[:kept]]
        shards.append(write_run(tmp_path / f"{shard}" / "r.jsonl", [planned(*key) for key in keys], rows))

    with pytest.raises(ProfileError, match=r"6 of 12 planned rollouts have no result \(1-2, 1-3, 2-0, 2-1, 2-2, …\)"):
        profile([run_at(shard) for shard in shards], tmp_path / "all.jsonl")
    [totals] = profile([run_at(shard) for shard in shards], tmp_path / "all.jsonl", allow_partial_rollouts=True).labels
    assert (totals.found, totals.planned, totals.complete, totals.partial, totals.missing) == (6, 12, 1, 1, 1)


def test_a_run_that_two_folders_hold_twice_is_refused(tmp_path):
    a = write_run(tmp_path / "a" / "r.jsonl", PLAN, [row(*key, 1.0) for key in REWARDS])

    with pytest.raises(ProfileError, match="overlap"):
        profile([run_at(a), run_at(a)], tmp_path / "all.jsonl")


@pytest.mark.parametrize("taken", ["r.jsonl", "r_failures.jsonl", "r_materialized_inputs.jsonl", "r_manifest.json"])
def test_kept_tasks_are_never_written_over_a_file_of_the_run(tmp_path, taken):
    run = write_run(tmp_path / "r.jsonl", [planned(0, 0)], [row(0, 0, 1.0)], [])
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    with pytest.raises(LedgerError, match="give another name"):
        profile([run_at(run)], tmp_path / "p.jsonl", keep="mean>=0", export=tmp_path / taken)

    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.mark.parametrize("taken", ["o.jsonl", "o_failures.jsonl", "o_materialized_inputs.jsonl", "link.jsonl"])
def test_kept_tasks_are_never_written_over_a_file_of_another_run(tmp_path, taken):
    run = write_run(tmp_path / "r.jsonl", [planned(0, 0)], [row(0, 0, 1.0)])
    write_run(tmp_path / "o.jsonl", [], [row(0, 0, 1.0)])
    (tmp_path / "link.jsonl").symlink_to(tmp_path / "o.jsonl")

    with pytest.raises(LedgerError, match="give another name"):
        profile([run_at(run)], tmp_path / "p.jsonl", keep="mean>=0", export=tmp_path / taken)


@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize("ending", ["_reward_profiling.jsonl", "_agent_metrics.json", "_repeat_level_metrics.json"])
def test_kept_tasks_and_the_profile_itself_are_never_one_file(tmp_path, ending, overwrite):
    run = write_run(tmp_path / "r.jsonl", [planned(0, 0)], [row(0, 0, 1.0)])
    (tmp_path / "link.jsonl").symlink_to(f"p{ending}")

    for export in (tmp_path / f"p{ending}", tmp_path / "link.jsonl"):
        with pytest.raises(LedgerError, match="the profile itself goes there"):
            profile([run_at(run)], tmp_path / "p.jsonl", keep="mean>=0", export=export, overwrite=overwrite)
    assert not (tmp_path / f"p{ending}").exists()


def test_kept_tasks_are_written_over_an_earlier_file_where_that_is_asked_for_alone(tmp_path):
    run = write_run(tmp_path / "r.jsonl", [planned(0, 0)], [row(0, 0, 1.0)])
    kept = tmp_path / "kept.jsonl"
    kept.write_bytes(b"mine\n")

    with pytest.raises(OutputExistsError, match=r"kept\.jsonl is there already\. Replace it with --overwrite"):
        profile([run_at(run)], tmp_path / "r.jsonl", keep="mean>=0", export=kept)
    assert (kept.read_bytes(), sorted(tmp_path.glob("*_reward_profiling*"))) == (b"mine\n", [])

    for _ in range(2):
        profile([run_at(run)], tmp_path / "r.jsonl", keep="mean>=0", export=kept, overwrite=True)
    assert len(lines_of(kept)) == 1


def test_a_row_that_cannot_be_read_any_more_is_named_and_nothing_is_written(tmp_path):
    output = write_run(tmp_path / "r.jsonl", PLAN, [row(*key, reward) for key, reward in REWARDS.items()])
    run = run_at(output)
    first, second, third, last = output.read_bytes().splitlines(keepends=True)
    output.write_bytes(first + second + b"[" * (len(third) - 1) + b"\n" + last)

    with pytest.raises(LedgerError, match=r"r\.jsonl: a row of task 1: "):
        profile([run], output)

    assert not reward_profiling_path_for(output).exists()
