"""A flat row as the episode task that it stands for."""

import pytest

from rollbook.errors import InputError
from rollbook.plan.materialize import materialize_task

ROW = {
    "responses_create_params": {"input": "q"},
    "expected": "4",
    "agent_ref": {"name": "a"},
    "task_source": "s",
    "skills_ref": {"hash": "h"},
    "_ng_rollout_index": 3,
    "_ng_anything": 1,
}


@pytest.mark.parametrize(
    ("names", "index", "found"),
    [
        ({"task_id": "t", "problem_id": "p", "instance_id": "i", "_ng_task_index": 5}, 9, "t"),
        ({"task_id": None, "problem_id": 0, "instance_id": "i"}, None, "0"),
        ({"instance_id": "i", "_ng_task_index": 5}, 9, "i"),
        ({"_ng_task_index": 5}, 9, "5"),
        ({"_ng_task_index": None}, 9, "9"),
        ({}, 0, "0"),
    ],
)
def test_a_task_is_named_by_the_first_id_that_it_has(names, index, found):
    task = materialize_task(ROW | names, taskset="ts", task_index=index)
    assert task["task_id"] == {"taskset": "ts", "task_id": found}


def test_routing_and_identity_of_a_run_stay_out_of_the_task():
    row = ROW | {"task_id": "t"}
    task = materialize_task(row, taskset="ts")
    assert task["task_input"] == {"responses_create_params": {"input": "q"}, "expected": "4", "task_id": "t"}
    assert row["agent_ref"] == {"name": "a"}


@pytest.mark.parametrize("index", [None, -1, True, 1.0])
def test_a_row_that_nothing_names_is_refused(index):
    with pytest.raises(InputError, match="nothing names the task"):
        materialize_task(ROW, taskset="ts", task_index=index)


@pytest.mark.parametrize("sign", [{"task_input": {}}, {"task_id": {"taskset": "ts", "task_id": "t"}}])
def test_a_row_that_is_an_episode_task_already_is_refused(sign):
    with pytest.raises(InputError, match="episode task already"):
        materialize_task(ROW | sign, taskset="ts")
