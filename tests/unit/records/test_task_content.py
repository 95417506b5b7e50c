"""What a task says, as digests."""

import pytest

from rollbook.records.task_content import content_digest, own_name, prompt_digest, task_digest
from rollbook.servers.openai.openai_response import NeMoGymResponseCreateParamsNonStreaming


def row(**given):
    return {
        "responses_create_params": {"input": "2+2?"},
        "expected_answer": "4",
        "_ng_task_index": 0,
        "_ng_rollout_index": 0,
        "agent_ref": {"name": "math"},
        **given,
    }


def asked(**params):
    return row(responses_create_params={"input": "2+2?"} | params)


def wrapped(params, **given):
    inner = {"responses_create_params": params, "task_data": {"answer": "4"}}
    return {"task_id": {"taskset": "sums", "task_id": "t1"}, "task_input": inner} | given


def echoed(given):
    """Return a row as a result holds it: its prompt as our servers send it back, with every field of the form."""
    params = NeMoGymResponseCreateParamsNonStreaming.model_validate(given["responses_create_params"])
    return given | {"responses_create_params": params.model_dump(mode="json")}


TOOL = {"type": "function", "name": "add", "parameters": {"type": "object", "properties": {}}}
CALL = {"type": "function_call", "call_id": "c", "name": "add", "arguments": "{}"}
CALLED = {"type": "function_call_output", "call_id": "c", "output": "4"}
SAID = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "4"}]}


@pytest.mark.parametrize(
    "given",
    [
        asked(),
        asked(input=[{"role": "system", "content": "Add."}, {"role": "user", "content": "2+2?"}]),
        asked(tools=[TOOL], tool_choice="required", instructions="Use the tool."),
        asked(tools=[TOOL], input=[{"role": "user", "content": [{"type": "input_text", "text": "2+2?"}]}]),
        asked(text={"format": {"type": "json_object"}}, metadata={"source": "sums"}),
        asked(input=[{"role": "user", "content": "2+2?"}, SAID, CALL, CALLED, {"role": "user", "content": "Sure?"}]),
    ],
)
def test_the_prompt_that_our_servers_send_back_is_the_prompt_that_was_planned(given):
    assert prompt_digest(echoed(given)) == prompt_digest(given)
    assert task_digest(echoed(given)) == task_digest(given)


@pytest.mark.parametrize(
    "other",
    [
        asked(tool_choice="none"),
        asked(tools=[TOOL]),
        asked(text={"format": {"type": "json_object"}}),
        asked(input=[{"role": "user", "content": "2+2?"}, SAID, {"role": "user", "content": "Sure?"}]),
    ],
)
def test_what_is_no_default_makes_another_prompt(other):
    assert prompt_digest(other) != prompt_digest(row())


@pytest.mark.parametrize(
    "same",
    [
        asked(tool_choice="auto", parallel_tool_calls=True, store=True, truncation="disabled", metadata={}, tools=[]),
        asked(text={"format": {"type": "text"}}, top_logprobs=0, service_tier="auto", max_tool_calls=None),
        row(agent_ref={"name": "other"}, _ng_rollout_index=3, _ng_task_index=9, skills_ref={"hash": "ab"}),
        asked(model="large", temperature=0.7, top_p=0.9, max_output_tokens=512, reasoning={"effort": "high"}),
        asked(metadata={"extra_body": '{"seed": 3, "top_k": 5, "chat_template_kwargs": {"thinking": true}}'}),
        asked(tools=None, metadata={}, instructions=""),
        asked(input=[{"role": "user", "content": "2+2?"}]),
        asked(input=[{"role": "user", "content": "2+2?", "type": "message", "status": None}]),
        dict(reversed(row().items())),
    ],
)
def test_neither_routing_nor_sampling_nor_an_echo_with_defaults_makes_another_task(same):
    assert task_digest(same) == task_digest(row())
    assert prompt_digest(same) == prompt_digest(row())


@pytest.mark.parametrize(
    "other",
    [
        asked(input="2+3?"),
        asked(instructions="Be brief."),
        asked(tools=[{"name": "add"}]),
        asked(metadata={"extra_body": '{"documents": ["a"]}'}),
        asked(input=[{"role": "system", "content": "2+2?"}]),
    ],
)
def test_what_a_model_is_told_makes_another_task(other):
    assert task_digest(other) != task_digest(row())
    assert prompt_digest(other) != prompt_digest(row())


def test_another_field_makes_another_task_with_the_same_prompt():
    other = row(expected_answer="5")
    assert task_digest(other) != task_digest(row())
    assert prompt_digest(other) == prompt_digest(row())


def test_how_a_model_is_asked_belongs_to_the_content_of_a_batch_and_not_to_the_task():
    assert content_digest(asked(temperature=0.7)) != content_digest(row())
    assert task_digest(asked(temperature=0.7)) == task_digest(row())


def test_a_materialized_task_is_told_apart_by_what_its_input_says():
    plain = wrapped({"input": "2+2?"})
    assert task_digest(wrapped({"input": "2+2?", "temperature": 1.0}, _ng_task_index=4)) == task_digest(plain)
    assert task_digest(wrapped({"input": "2+3?"})) != task_digest(plain)
    assert prompt_digest(plain) == prompt_digest(row())


@pytest.mark.parametrize("silent", [{}, {"responses_create_params": None}, {"responses_create_params": {}}])
def test_a_row_that_does_not_say_what_was_asked_has_no_digest_of_it(silent):
    assert prompt_digest(silent) is None


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ({"task_id": "t1"}, "t1"),
        ({"problem_id": 7}, "7"),
        ({"instance_id": "repo-1", "problem_id": None}, "repo-1"),
        ({"task_id": {"taskset": "sums", "task_id": "t1"}}, "sums/t1"),
        ({"_ng_task_id": {"taskset": "sums", "task_id": "t1"}}, "sums/t1"),
        ({}, None),
    ],
)
def test_a_task_is_named_by_its_own_id(given, name):
    assert own_name(row(**given)) == name
