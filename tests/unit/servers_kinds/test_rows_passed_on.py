"""A verifier passes its row on as it was read: the reply says what it would say of the row's JSON."""

import json
from enum import StrEnum

import pytest
from pydantic import BaseModel, ConfigDict

from rollbook.servers.kinds.resources_sessions import BaseRunRequest, BaseVerifyRequest, BaseVerifyResponse

USER = {"role": "user", "content": "Which?"}
CALL = {"type": "function_call", "call_id": "c", "name": "look", "arguments": "{}", "id": "f", "status": "completed"}
OUTPUT = {"type": "function_call_output", "call_id": "c", "output": "seen"}
TEXT = {"type": "output_text", "text": "é", "annotations": [], "logprobs": None, "own": [1]}
SPOKEN = {"type": "message", "id": "m", "role": "assistant", "status": "completed", "content": [TEXT]}
TOKENS = {"prompt_token_ids": [1], "generation_token_ids": [2], "generation_log_probs": [-0.5]}
RESPONSE = {"id": "r", "created_at": 1, "model": "m", "tool_choice": "auto", "tools": [], "own": {"deep": [None]}}


class Mode(StrEnum):
    STRICT = "strict"


class Template(BaseModel):
    model_config = ConfigDict(extra="allow")

    pattern: str | None = None


class Request(BaseRunRequest):
    model_config = ConfigDict(extra="allow")

    mode: Mode | None = None
    template: Template | None = None
    expected: str = "A"


class VerifyRequest(Request, BaseVerifyRequest):
    pass


class VerifyResponse(BaseVerifyResponse):
    model_config = ConfigDict(extra="allow")

    expected: str


def row(*asked, **more):
    return {
        "responses_create_params": {"input": list(asked) or "Which?"},
        "response": {**RESPONSE, "output": []},
    } | more


ROWS = [
    row(),
    row(USER, CALL, OUTPUT, {**SPOKEN, **TOKENS}, SPOKEN),
    row(USER, response={**RESPONSE, "output": [CALL, {**SPOKEN, **TOKENS}]}),
    row(USER, _ng_rollout_id="3-0-a1", mode="strict", template={"pattern": "x", "own": {"a": [1]}}),
    row(USER, own=None, deep={"a": [{"b": 1.5}]}, _ng_task_index=7),
]


@pytest.mark.parametrize("given", ROWS)
def test_a_row_passed_on_by_its_fields_is_answered_as_one_passed_on_as_json(given):
    body = VerifyRequest.model_validate(given)
    by_fields = VerifyResponse(**dict(body), reward=1.0)
    by_json = VerifyResponse(**body.model_dump(), reward=1.0)
    assert by_fields.model_dump_json(by_alias=True) == by_json.model_dump_json(by_alias=True)
    assert "_ng_rollout_id" not in json.loads(by_fields.model_dump_json(by_alias=True))
