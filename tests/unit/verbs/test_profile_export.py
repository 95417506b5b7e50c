"""Source rows of planned rows: what a run added goes, and what a dataset said stays."""

import json

import pytest

from rollbook.verbs.profile_export import planned_row, source_row
from unit.verbs.profiled import planned


def exported(**fields):
    return source_of(json.dumps(planned(3, 2, **fields)).encode())


def source_of(line):
    return json.loads(source_row(line, planned_row(line)))


def params(body, **others):
    return {"responses_create_params": {"input": "?", "metadata": {"extra_body": json.dumps(body)} | others}}


def test_identity_routing_and_skills_go():
    added = {"_ng_attempt_index": 1, "_ng_run_id": "r", "_ng_environment_server": "s", "skills_ref": {"path": "p"}}

    assert exported(**added, task_source="t") == {
        "responses_create_params": {"input": "question 3"},
        "expected_answer": "3",
        "agent_ref": {"name": "a"},
        "task_source": "t",
    }


@pytest.mark.parametrize(
    ("given", "left"),
    [
        (params({"seed": 2}), {"input": "?"}),
        (params({"top_k": 5, "seed": 2}), {"input": "?", "metadata": {"extra_body": '{"top_k":5}'}}),
        (params({"seed": 2}, user="u"), {"input": "?", "metadata": {"user": "u"}}),
        (params({"seed": 7}), params({"seed": 7})["responses_create_params"]),
        (params([1, "seed"]), params([1, "seed"])["responses_create_params"]),
        ({"responses_create_params": {"input": '"seed"'}}, {"input": '"seed"'}),
        ({"responses_create_params": ["seed", '"seed"']}, ["seed", '"seed"']),
    ],
)
def test_the_seed_of_a_repeat_goes_and_any_other_seed_stays(given, left):
    assert exported(**given)["responses_create_params"] == left


def test_provenance_inside_a_task_stays():
    row = {"task_id": {"taskset": "t", "task_id": "1"}, "task_input": {"task_data": {"_ng_digest": "ab"}}}
    line = json.dumps(row | {"_ng_task_index": 0, "_ng_rollout_index": 0, "_ng_environment_server": "s"}).encode()

    assert source_of(line) == row
