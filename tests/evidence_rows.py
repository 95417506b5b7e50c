"""Saved rollouts with evidence of what went on inside: a sound one, and what makes it less so."""

import copy
import json

CALL = {
    "model_call_id": "c1",
    "started_at": 1.0,
    "completed_at": 2.0,
    "response": {"id": "r1", "status": "completed", "output": [{"type": "message", "content": [{"text": "8"}]}]},
    "response_metadata": {"status_code": 200, "model_ref": {"type": "responses_api_models", "name": "policy"}},
    "token_stats": {"prompt_tokens": 3, "completion_tokens": 2},
}
TURN = {
    "invocation_id": "i",
    "task_id": "0",
    "rollout_id": "0-0",
    "turn_no": 1,
    "timestamp": 1.0,
    "question": "4 + 4?",
    "answer": "8",
    "step_count": 0,
    "model_calls": [{"model_call_id": "c1"}],
}
ROW = {
    "_ng_task_index": 0,
    "_ng_rollout_index": 0,
    "reward": 1.0,
    "response": {
        "output": [{"type": "message", "content": [{"type": "output_text", "text": "8"}]}],
        "usage": {"input_tokens": 3, "output_tokens": 2, "total_tokens": 5},
    },
    "ng_trajectory": {
        "schema_version": "1.0",
        "task_id": "0",
        "rollout_id": "0-0",
        "invocations": [
            {
                "kind": "agent",
                "invocation_id": "i",
                "status": "completed",
                "model_calls": [{"model_call_id": "c1"}],
                "conversation": [],
            }
        ],
        "turns": [TURN],
        "model_calls": [CALL],
        "tool_calls": [],
        "gaps": [],
    },
}


def row(task=0, rollout=0, **members):
    """A sound record; `members` replace those of the row."""
    return copy.deepcopy(ROW) | {"_ng_task_index": task, "_ng_rollout_index": rollout} | copy.deepcopy(members)


def with_trajectory(**members):
    """A sound record whose trajectory has other `members`."""
    return row(ng_trajectory=ROW["ng_trajectory"] | members)


def with_call(**members):
    """A sound record whose one call has other `members`."""
    return with_trajectory(model_calls=[call(**members)])


def with_turn(**members):
    """A sound record whose one turn has other `members`."""
    return with_trajectory(turns=[TURN | members])


def call(**members):
    """The call of a sound record with other `members`."""
    return copy.deepcopy(CALL) | copy.deepcopy(members)


def failed(**members):
    """A call that the server answered with 500."""
    return call(response_metadata=CALL["response_metadata"] | {"status_code": 500}, **members)


def gap(code):
    """A sound record in which something could not be observed."""
    return with_trajectory(gaps=[{"code": code}])


def without_evidence(task=0, rollout=0, **members):
    """A record as a run without observability writes it."""
    return {"_ng_task_index": task, "_ng_rollout_index": rollout, "reward": 0.0} | members


def line(record):
    """The record as it lies in a file, without its newline."""
    return json.dumps(record).encode()
