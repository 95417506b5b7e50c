"""Lists of ATIF trajectories, and what a verifier sees of one."""

import hashlib
import json

import pytest

from rollbook.errors import ConfigPathNotFoundError, InputError
from rollbook.inputs.atif import listed_trajectories
from rollbook.inputs.atif_response import COMPLETE, LOSSY, response_of

CALL = {"tool_call_id": "c1", "function_name": "add", "arguments": {"a": 2}}
STEPS = [
    {"step_id": 1, "source": "system", "message": "be brief"},
    {"step_id": 2, "source": "user", "message": "2+2?"},
    {
        "step_id": 3,
        "source": "agent",
        "message": "",
        "reasoning_content": "add them",
        "tool_calls": [CALL],
        "observation": {"results": [{"source_call_id": "c1", "content": "4"}]},
        "metrics": {"prompt_tokens": 5, "completion_tokens": 2},
    },
    {"step_id": 4, "source": "agent", "message": "4"},
]


def trajectory(**fields):
    return (
        {"schema_version": "ATIF-v1.7", "session_id": "s", "agent": {"name": "a", "model_name": "m"}}
        | {"steps": STEPS}
        | fields
    )


def listing(folder, *trajectories, **fields):
    rows = []
    for number, one in enumerate(trajectories):
        path = folder / f"t{number}.json"
        path.write_text(one if isinstance(one, str) else json.dumps(one))
        rows.append({"trajectory_path": path.name, "_ng_task_index": number, "_ng_rollout_index": 0} | fields)
    manifest = folder / "list.jsonl"
    manifest.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return manifest


def test_a_trajectory_is_known_by_its_rollout_its_content_and_its_names(tmp_path):
    (one,) = listed_trajectories(listing(tmp_path, trajectory(trajectory_id="t")))
    content = (tmp_path / "t0.json").read_bytes()
    assert (str(one.key), one.session_id, one.trajectory_id) == ("0-0", "s", "t")
    assert one.sha256 == hashlib.sha256(content).hexdigest()
    assert one.has_tool_calls


def test_a_pinned_digest_is_checked_whatever_its_case(tmp_path):
    digest = hashlib.sha256(json.dumps(trajectory()).encode()).hexdigest()
    assert listed_trajectories(listing(tmp_path, trajectory(), expected_sha256=digest.upper()))
    with pytest.raises(InputError, match="pinned"):
        listed_trajectories(listing(tmp_path, trajectory(), expected_sha256="0" * 64))


@pytest.mark.parametrize(
    ("others", "what"),
    [
        ({"trajectory_path": "t0.json"}, "the file"),
        ({"_ng_task_index": 0}, "the rollout 0-0"),
        ({}, "the trajectory s/-"),
    ],
)
def test_what_is_listed_twice_is_refused_with_both_lines(tmp_path, others, what):
    manifest = listing(tmp_path, trajectory(), trajectory(notes="another"))
    first, second = map(json.loads, manifest.read_text().splitlines())
    manifest.write_text(f"{json.dumps(first)}\n{json.dumps(second | others)}\n")
    with pytest.raises(InputError, match=what) as refused:
        listed_trajectories(manifest)
    assert "list.jsonl:2" in str(refused.value)
    assert "line 1" in str(refused.value)


def test_one_content_under_two_names_is_refused(tmp_path):
    with pytest.raises(InputError, match="the content"):
        listed_trajectories(listing(tmp_path, trajectory(), trajectory()))


@pytest.mark.parametrize(
    "text",
    [
        '{"schema_version": "ATIF-v1.7", "steps": [{}], "steps": [{}]}',
        '{"schema_version": "ATIF-v1.7", "steps": [{"source": "agent", "metrics": {"logprob": NaN}}]}',
        '{"schema_version": "ATIF-v1.7", "steps": []}',
        '{"schema_version": "ATIF-v1.7", "steps": [1]}',
        '{"schema_version": "ATIF-v2.0", "steps": [{}]}',
        '{"steps": [{}]}',
        "[]",
        "no json",
        "[" * 100_000,
    ],
)
def test_a_trajectory_that_is_none_is_refused_by_its_file(tmp_path, text):
    with pytest.raises(InputError, match=r"t0\.json"):
        listed_trajectories(listing(tmp_path, text))


@pytest.mark.parametrize(
    "fields",
    [
        {"extra": 1},
        {"_ng_task_index": -1},
        {"_ng_rollout_index": "0"},
        {"trajectory_path": ""},
        {"expected_sha256": "x"},
    ],
)
def test_a_row_that_is_none_is_refused_by_its_line(tmp_path, fields):
    with pytest.raises(InputError, match=r"list\.jsonl:1"):
        listed_trajectories(listing(tmp_path, trajectory(), **fields))


def test_a_trajectory_that_is_not_there_is_named(tmp_path):
    with pytest.raises(ConfigPathNotFoundError, match=r"gone\.json"):
        listed_trajectories(listing(tmp_path, trajectory(), trajectory_path="gone.json"))


def test_a_list_without_rows_is_refused(tmp_path):
    (tmp_path / "list.jsonl").write_text("\n")
    with pytest.raises(InputError, match="no trajectory"):
        listed_trajectories(tmp_path / "list.jsonl")


def test_the_response_is_what_the_agent_did_and_what_came_back_in_order():
    response, status = response_of(trajectory(), "t.json")
    assert [item["type"] for item in response["output"]] == [
        "reasoning",
        "function_call",
        "function_call_output",
        "message",
    ]
    assert json.loads(response["output"][1]["arguments"]) == {"a": 2}
    assert response["output"][-1]["content"][0]["text"] == "4"
    assert (response["model"], status) == ("m", COMPLETE)
    assert response["usage"]["total_tokens"] == 7


def test_a_turn_of_the_user_after_the_first_answer_stays_in_its_place():
    steps = [*STEPS, {"source": "user", "message": "sure?"}, {"source": "agent", "message": "yes"}]
    response, _ = response_of(trajectory(steps=steps), "t.json")
    assert [item.get("role") for item in response["output"][-2:]] == ["user", "assistant"]


def test_content_that_is_no_text_is_left_out_and_said():
    parts = [{"type": "text", "text": "4"}, {"type": "image", "source": {"path": "a.png"}}]
    response, status = response_of(trajectory(steps=[{"source": "agent", "message": parts}]), "t.json")
    assert response["output"][0]["content"][0]["text"] == "4"
    assert status == LOSSY


@pytest.mark.parametrize(
    "steps",
    [
        [{"source": "user", "message": "2+2?"}],
        [{"source": "somebody", "message": "4"}],
        [{"source": "agent", "tool_calls": [{"function_name": "add"}]}],
    ],
)
def test_steps_that_hold_no_answer_are_refused(steps):
    with pytest.raises(InputError, match=r"t\.json"):
        response_of(trajectory(steps=steps), "t.json")


def test_final_metrics_go_before_those_of_the_steps():
    final = {"total_prompt_tokens": 50, "total_completion_tokens": 20, "total_cached_tokens": 10}
    response, _ = response_of(trajectory(final_metrics=final), "t.json")
    assert response["usage"]["input_tokens"] == 50
    assert response["usage"]["input_tokens_details"] == {"cached_tokens": 10}
