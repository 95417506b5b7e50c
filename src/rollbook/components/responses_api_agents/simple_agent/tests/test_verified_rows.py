import json

import pytest

from responses_api_agents.simple_agent.app import SimpleAgentVerifyResponse
from responses_api_agents.simple_agent.tests.bench import ASKED, ROW, TEAL, Bench
from responses_api_agents.simple_agent.verified_rows import is_verified
from unit.servers_kinds.playground import message, reply_with, thought

ANSWERED = reply_with(
    thought("hm"), TEAL, {"type": "function_call_output", "call_id": "c", "output": "{}"}, message("x")
)
GOOD = {"responses_create_params": ASKED, "response": ANSWERED, "reward": 1, "mask_sample": True, "aside": [2.50]}


def row(**changed) -> bytes:
    return json.dumps(GOOD | changed).encode()


def response(**changed) -> dict[str, object]:
    return {"response": ANSWERED | changed}


def item(of, **changed) -> dict[str, object]:
    return response(output=[of | changed])


def without(key, of) -> dict[str, object]:
    return {name: value for name, value in of.items() if name != key}


def nested(depth) -> bytes:
    return row(aside="X").replace(b'"X"', b"[" * depth + b"]" * depth)


FORMS = {
    "a response dumped in full": {"response": SimpleAgentVerifyResponse(**GOOD).response.model_dump()},
    "names of its own": response(own={"a": 1}) | {"failure_reason": "none"},
    "a reward with a fraction": {"reward": 0.5, "mask_sample": False, "failure_kind": None},
}


@pytest.mark.parametrize("changed", [{}, *FORMS.values()], ids=["plain", *FORMS])
async def test_a_row_that_its_class_takes_goes_on_as_it_came(changed):
    written = row(**changed)
    assert await verified_by(written) == (200, json.loads(written))
    assert is_verified(written)


TOKENS = {"prompt_token_ids": [1], "generation_token_ids": [2], "generation_log_probs": [-0.5]}
OTHER_WORDS = {
    "a mask that is text": {"mask_sample": "false"},
    "a mask that is a number": {"mask_sample": 0},
    "a reward that is text": {"reward": "1.0"},
    "a kind of failure": {"failure_kind": "judge_failed"},
    "a rollout's id": {"_ng_rollout_id": "a"},
    "tokens": item(message("x"), **TOKENS),
    "a refusal": item(message("x"), content=[{"type": "refusal", "refusal": "no"}]),
    "text beyond ASCII": {"aside": "é"},
    "many items": response(output=[message("x")] * 200),
}


@pytest.mark.parametrize("changed", OTHER_WORDS.values(), ids=OTHER_WORDS)
async def test_a_row_in_other_words_means_what_its_class_makes_of_it(changed):
    made = SimpleAgentVerifyResponse(**(GOOD | changed)).model_dump(mode="json", by_alias=True)
    status, said = await verified_by(row(**changed))
    known = {key: said[key] for key in made if key in said}
    assert (status, known["reward"], known.get("mask_sample")) == (200, made["reward"], made["mask_sample"])
    assert SimpleAgentVerifyResponse(**said).model_dump(mode="json", by_alias=True) == made


REFUSED = {
    "mask: no truth": row(mask_sample="maybe"),
    "mask: null": row(mask_sample=None),
    "mask: an object": row(mask_sample={}),
    "mask: a list": row(mask_sample=[1]),
    "kind: a number": row(failure_kind=5),
    "reason: an object": row(failure_reason={}),
    "rollout's id: a number": row(_ng_rollout_id=5),
    "params: null": row(responses_create_params=None),
    "params: text": row(responses_create_params="x"),
    "params: no input": row(responses_create_params={}),
    "params: no such input": row(responses_create_params={"input": 5}),
    "response: null": row(response=None),
    "response: empty": row(response={}),
    "response: text": row(response="x"),
    "response: a model without a name": row(**response(model=None)),
    "response: no time": row(**response(created_at="noon")),
    "response: no such object": row(**response(object="chat")),
    "response: no such status": row(**response(status="done")),
    "response: no object as its metadata": row(**response(metadata=5)),
    "response: no tool": row(**response(tools=["look_up"])),
    "response: no sum": row(**response(usage={"input_tokens": 1})),
    "response: more than a number holds": row(**response(max_tool_calls=10**25)),
    "output: null": row(**response(output=None)),
    "output: no item": row(**response(output=["x"])),
    "output: no such item": row(**item({"type": "telepathy"})),
    "message: no id": row(**response(output=[without("id", message("x"))])),
    "message: no text": row(**item(message("x"), content=[{"type": "output_text", "text": 5}])),
    "message: a text of no type": row(**item(message("x"), content=[{"text": "x"}])),
    "message: no such status": row(**item(message("x"), status=None)),
    "message: some tokens": row(**item(message("x"), prompt_token_ids=[1])),
    "thought: no summary": row(**item(thought("hm"), summary="hm")),
    "call: no text as arguments": row(**item(TEAL, arguments={})),
    "no UTF-8": row(aside="X").replace(b"X", b"\xff"),
    "300 lists": nested(300),
    "900 lists": nested(900),
    "2000 lists": nested(2000),
    "many items and 300 lists": nested(300).replace(
        b'"output": [', b'"output": [' + json.dumps(message("x")).encode() + b","
    ),
    "a list": b"[]",
}


@pytest.mark.parametrize("written", REFUSED.values(), ids=REFUSED)
async def test_a_row_that_its_class_would_refuse_is_refused(written):
    assert not is_verified(written)
    assert (await verified_by(written))[0] == 500


async def verified_by(written):
    bench = Bench(reply_with(message("teal")), tools={"/seed_session": [{}], "/verify": [written]})
    answer = await bench.post("/run", ROW)
    return answer.status, answer.body
