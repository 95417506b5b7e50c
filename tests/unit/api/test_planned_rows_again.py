"""Rows of a plan, given as the rows of another run: the plan that they are of, and nothing else."""

import json

import pytest

from rollbook.api.rollout_collection import RolloutCollectionHelper
from rollbook.errors import InputError

FLAT = [{"responses_create_params": {"input": f"add {n}"}, "agent_ref": {"name": "A"}, "n": n} for n in range(3)]
EPISODES = [{"task_id": {"taskset": "ts", "task_id": str(n)}, "task_input": {"n": n}} for n in range(2)]


def preprocess(rows, **options):
    return RolloutCollectionHelper().preprocess_examples(rows, **options)


@pytest.mark.parametrize(
    ("rows", "options"),
    [
        (FLAT, {"num_repeats": 3}),
        (FLAT, {"num_repeats": 2, "num_repeats_add_seed": True}),
        (FLAT, {"num_repeats": 2, "fan_out": {"A": ["X", "Y"]}}),
        ([row | {"task_id": row["n"]} for row in FLAT], {"num_repeats": 2, "agent_map": {"A": "B"}}),
        ([*FLAT, FLAT[0]], {"num_repeats": 2}),
        (EPISODES, {"num_repeats": 2}),
        ([row | {"_ng_task_index": 7 - n} for n, row in enumerate([*FLAT, *EPISODES])], {"num_repeats": 2}),
    ],
)
def test_a_plan_is_planned_as_it_is(rows, options):
    planned = preprocess(rows, **options)
    assert json.dumps(preprocess(planned)) == json.dumps(planned)
    backwards = preprocess(planned[::-1])
    assert sorted((row["_ng_task_index"], row["_ng_rollout_index"]) for row in backwards) == sorted(
        (row["_ng_task_index"], row["_ng_rollout_index"]) for row in planned
    )


def test_a_task_of_a_plan_is_chosen_once_and_repeated_anew():
    planned = preprocess([row | {"problem_id": str(row["n"])} for row in FLAT], num_repeats=3)
    chosen = preprocess(planned, task_ids=["1"], num_repeats=2)
    assert [(row["n"], row["_ng_task_index"], row["_ng_rollout_index"]) for row in chosen] == [(1, 1, 0), (1, 1, 1)]


def test_rows_of_a_plan_that_say_something_else_of_one_task_are_refused():
    planned = preprocess(FLAT, num_repeats=2)
    planned[1]["responses_create_params"] = {"input": "subtract"}
    with pytest.raises(InputError, match="different tasks share one id: 0 at row 0 and row 1"):
        preprocess(planned)
    planned[1]["responses_create_params"] = {"input": "add 0", "temperature": 0.5}
    with pytest.raises(InputError, match="different tasks share one id: 0 at row 0 and row 1"):
        preprocess(planned)
