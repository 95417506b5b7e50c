"""A run's files as a side of a comparison."""

import json

import pytest

from compared_run import lines, task, write
from rollbook.compare.agents import AgentChoice
from rollbook.compare.verdict import Verdict
from rollbook.errors import NoRunError
from rollbook.verbs.compare_rows import Settings, compared_rows
from rollbook.verbs.compare_side import side_of
from saved_run import SavedRun, planned

SETTINGS = Settings(agents=AgentChoice())
THREE = [task(0, [1.0, 0.0]), task(1, [1.0, 1.0]), task(2, [0.0, "missing"])]


def states(side):
    return [[side.states[number] for number in side.states_of(unit)] for unit in range(len(side))]


def difference(*outputs):
    (compared,), _ = compared_rows(outputs[0], outputs[1:], SETTINGS)
    return compared.whole.difference


def test_every_state_of_a_rollout_is_told_apart(tmp_path):
    ends = [1.0, "masked", "unscored", "agent_run_error", "missing"]
    side = side_of(write(tmp_path, [task(0, ends)]))
    assert states(side) == [["scored", "masked", "unscored", "failed (agent_run_error)", "missing"]]
    assert list(side.rewards(0)) == [1.0]


@pytest.mark.parametrize("plan", [True, False])
def test_a_foreign_run_is_compared_whether_it_has_a_plan_or_not(tmp_path, plan):
    ours = write(tmp_path / "a", THREE)
    found = difference(ours, write(tmp_path / "b", THREE, plan=plan, order=[2, 0, 1], first=7))
    assert found.paired.pairs == 3
    assert found.difference == 0
    assert found.candidate.states == {"scored": 5, "missing": 1}


def test_two_runs_without_plans_are_paired_by_the_prompts_that_results_echo(tmp_path):
    ours = write(tmp_path / "a", THREE, plan=False)
    found = difference(ours, write(tmp_path / "b", THREE, plan=False, order=[1, 2, 0]))
    assert found.paired.by == {"prompt": 3}


def test_runs_that_say_nothing_of_their_tasks_are_paired_by_number(tmp_path):
    ours = write(tmp_path / "a", THREE, plan=False, echo=False)
    found = difference(ours, write(tmp_path / "b", THREE, plan=False, echo=False))
    assert found.paired.by == {"number": 3}


def test_a_setting_of_the_model_does_not_make_another_task(tmp_path):
    hot = [task(0, [1.0], params={"input": "problem 0", "temperature": 1.0, "model": "other"})]
    found = difference(write(tmp_path / "a", [task(0, [1.0])]), write(tmp_path / "b", hot))
    assert found.paired.by == {"content": 1}


def test_the_same_prompt_with_another_answer_to_expect_is_said(tmp_path):
    ours = write(tmp_path / "a", [task(0, [1.0], expected_answer="4")])
    found = difference(ours, write(tmp_path / "b", [task(0, [1.0], expected_answer="5")]))
    assert found.paired.by == {"prompt, other fields differ": 1}


def test_another_prompt_for_a_task_of_the_same_name_is_said(tmp_path):
    ours = write(tmp_path / "a", [task(0, [1.0], problem_id="p1")])
    theirs = write(tmp_path / "b", [task(0, [1.0], problem_id="p1", params={"input": "Think. problem 0"})])
    assert difference(ours, theirs).paired.by == {"name, content differs": 1}


def test_an_agent_that_shares_tasks_with_another_has_its_own_rollouts(tmp_path):
    output = tmp_path / "r.jsonl"
    agents = ["x", "y", "x"]
    rows = [
        {"_ng_task_index": 0, "_ng_rollout_index": repeat, "agent_ref": {"name": name}, "reward": 1.0 - repeat / 2}
        for repeat, name in enumerate(agents)
    ]
    lines(output, rows)
    side = side_of(output)
    assert [side.agents[number] for number in side.agent] == ["x", "y"]
    assert [list(side.rewards(unit)) for unit in range(2)] == [[1.0, 0.0], [0.5]]


def test_where_a_rollout_stands_is_asked_of_the_fold(tmp_path):
    run = SavedRun(tmp_path, [planned(0, 0), planned(1, 0), planned(2, 0)])
    run.failed(0, 0, 0).ran(0, 0, 1, reward=0.5)
    run.ran(1, 0, 0).reserves((1, 0, 1))
    run.failed(2, 0, 0).reserves((2, 0, 1))
    side = side_of(run.output)
    assert states(side) == [["scored"], ["scored"], ["missing"]]
    assert list(side.scored) == [0.5, 1.0]


def test_damaged_lines_are_told_and_the_rest_is_compared(tmp_path):
    output = write(tmp_path, THREE)
    with output.open("a") as file:
        file.write('{"no": "row"}\n{"torn')
    plan = output.with_name("rollouts_materialized_inputs.jsonl")
    plan.write_text(plan.read_text() + "[]\n")
    side = side_of(output)
    assert len(side) == 3
    assert any(f"damaged: {output}:6" in note for note in side.notes)
    assert any("materialized_inputs.jsonl:7" in note for note in side.notes)


def test_a_rollout_beyond_the_plan_is_not_compared(tmp_path):
    output = write(tmp_path, [task(0, [1.0])])
    beyond = {"_ng_task_index": 9, "_ng_rollout_index": 0, "reward": 0.0, "agent_ref": {"name": "solver"}}
    with output.open("a") as file:
        file.write(json.dumps(beyond) + "\n")
    assert list(side_of(output).task) == [0]


def test_tags_are_found_at_the_top_in_metadata_and_in_task_data(tmp_path):
    tasks = [
        task(0, [1.0], difficulty="hard"),
        task(1, [1.0], metadata={"difficulty": "hard"}),
        task(2, [1.0], verifier_metadata={"difficulty": ["easy", "hard"]}),
        task(3, [1.0], difficulty="easy"),
        task(4, [1.0], level=1),
    ]
    side = side_of(
        write(tmp_path, tasks), [{"difficulty": "hard"}, {"difficulty": ["easy"], "level": 1}, {"level": 1}, {}]
    )
    assert list(side.tags) == [0b1001, 0b1001, 0b1001, 0b1000, 0b1100]


def test_several_candidates_share_one_level(tmp_path):
    ours = write(tmp_path / "a", [task(number, [1.0]) for number in range(40)])
    theirs = [task(number, [float(number >= 6)]) for number in range(40)]
    alone, _ = compared_rows(ours, [write(tmp_path / "b", theirs)], SETTINGS)
    both, _ = compared_rows(ours, [tmp_path / "b" / "rollouts.jsonl", write(tmp_path / "c", theirs)], SETTINGS)
    p = alone[0].whole.judgement.p_value
    assert p == pytest.approx(2 / 2**6)
    assert [each.whole.judgement.p_value for each in both] == [pytest.approx(2 * p)] * 2
    assert [each.whole.judgement.verdict for each in (*alone, *both)] == [Verdict.WORSE] + [Verdict.NO_DIFFERENCE] * 2


def test_a_path_without_a_run_is_refused(tmp_path):
    with pytest.raises(NoRunError):
        side_of(tmp_path / "none.jsonl")


MARKED = {"_ng_failure_class": "timeout_exceeded", "_ng_failure_final": True, "_ng_failure_counts_as_zero": True}


def marks(output, *numbers, **more):
    """Let rollouts of a run end in failures that their producer marked to count as zero."""
    failures = output.with_name("rollouts_failures.jsonl")
    of = [
        {"_ng_task_index": task, "_ng_rollout_index": repeat, "agent_ref": {"name": "solver"}} | MARKED | more
        for task, repeat in numbers
    ]
    lines(failures, of)
    return output


@pytest.mark.parametrize("plan", [True, False])
def test_a_failure_that_its_producer_marked_counts_as_zero(tmp_path, plan):
    tasks = [task(0, [1.0, "missing", 1.0]), task(1, ["missing"]), task(2, [1.0, "missing"])]
    side = side_of(marks(write(tmp_path, tasks, plan=plan), (0, 1), (1, 0)))
    counted = "counts as zero (timeout_exceeded)"
    assert states(side)[:2] == [["scored", counted, "scored"], [counted]]
    assert [list(side.rewards(unit)) for unit in range(3)] == [[1.0, 0.0, 1.0], [0.0], [1.0]]
    assert [reward for _, reward, _ in side.scored_places(0)] == [1.0, 0.0, 1.0]


def test_a_mark_of_an_earlier_attempt_counts_nothing(tmp_path):
    output = marks(write(tmp_path, [task(0, ["missing"])]), (0, 0))
    with output.open("a") as file:
        row = {"_ng_task_index": 0, "_ng_rollout_index": 0, "agent_ref": {"name": "solver"}, "reward": 1.0}
        file.write(json.dumps(row) + "\n")
    assert states(side_of(output)) == [["scored"]]


def test_zeros_of_a_task_that_two_agents_try_go_to_their_agents(tmp_path):
    output = write(tmp_path, [task(0, [1.0, 1.0, "missing", 1.0, "missing"])])
    plan = output.with_name("rollouts_materialized_inputs.jsonl")
    rows = [json.loads(line) for line in plan.read_text().splitlines()]
    rows[2]["agent_ref"] = rows[3]["agent_ref"] = {"name": "other"}
    lines(plan, rows)
    side = side_of(marks(output, (0, 2), (0, 4)))
    assert {side.agents[side.agent[unit]]: list(side.rewards(unit)) for unit in range(2)} == {
        "solver": [1.0, 1.0, 0.0],
        "other": [0.0, 1.0],
    }


def lookalikes(order, version):
    says = {"input": "solve the task"}
    return [
        task(place, [float(case < 6)], params=says, case=case, verifier_metadata={"version": version})
        for place, case in enumerate(order)
    ]


def test_tasks_of_one_prompt_are_paired_by_the_field_that_tells_them_apart(tmp_path):
    ours = write(tmp_path / "a", lookalikes(range(12), 1))
    theirs = write(tmp_path / "b", lookalikes(range(11, -1, -1), 2))
    (compared,), _ = compared_rows(ours, [theirs], SETTINGS)
    found = compared.whole
    assert found.difference.paired.by == {"prompt, other fields differ": 12}
    assert (found.difference.paired.changed, found.difference.paired.twins) == (12, 0)
    assert (found.flips.regressed, found.flips.improved) == (0, 0)


def test_tasks_of_one_prompt_that_no_field_tells_apart_count_as_tasks_of_one_side(tmp_path):
    ours, theirs = lookalikes(range(12), 1), lookalikes(range(12), 2)
    for place, one in enumerate((*ours, *theirs)):
        one["said"]["case"] = place
    found = difference(write(tmp_path / "a", ours), write(tmp_path / "b", theirs))
    assert (found.paired.pairs, found.paired.ambiguous_baseline, found.paired.ambiguous_candidate) == (0, 12, 12)
    assert (found.shared_baseline, found.shared_candidate) == (0, 0)
