import pytest

from rollbook.servers.converter.responses_converter import ResponsesConverter
from rollbook.servers.openai.openai_chat import NeMoGymChatCompletion
from rollbook.servers.openai.openai_response import NeMoGymResponseCreateParamsNonStreaming
from rollbook.servers.openai.openai_training import (
    NeMoGymResponseFunctionToolCallForTraining,
    NeMoGymResponseOutputMessageForTraining,
    NeMoGymResponseReasoningItemForTraining,
)

TOKENS = {"prompt_token_ids": [1], "generation_token_ids": [2], "generation_log_probs": [-0.5]}
CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
REQUEST = NeMoGymResponseCreateParamsNonStreaming(input="q", model="asked", temperature=0.5, metadata={"a": "b"})


def completion(message, finish="stop", usage=None, **more):
    choice = {"index": 0, "finish_reason": finish, "message": {"role": "assistant", **message}, **more}
    body = {"id": "chat-1", "created": 7, "model": "served", "choices": [choice], "usage": usage}
    return NeMoGymChatCompletion.model_validate(body)


def response(message, parser=True, **more):
    converter = ResponsesConverter(return_token_id_information=True, uses_reasoning_parser=parser)
    return converter.chat_completion_to_response(REQUEST, completion(message, **more))


def sketch(item):
    if item.type == "reasoning":
        return ("reasoning", [summary.text for summary in item.summary])
    if item.type == "function_call":
        return ("call", item.id, item.call_id, item.name, item.status)
    return ("message", [getattr(part, "text", None) or getattr(part, "refusal", "") for part in item.content])


@pytest.mark.parametrize(
    ("message", "items"),
    [
        ({"content": "a"}, [("message", ["a"])]),
        ({"content": None}, [("message", [""])]),
        ({"content": ""}, [("message", [""])]),
        ({"content": None, "tool_calls": [CALL]}, [("call", "c1", "c1", "f", "completed")]),
        ({"content": "a", "tool_calls": [CALL]}, [("message", ["a"]), ("call", "c1", "c1", "f", "completed")]),
        ({"content": "<think>x\ny</think>a"}, [("reasoning", ["x\ny"]), ("message", ["a"])]),
        ({"content": "<think>x</think>b<think>y</think>c"}, [("reasoning", ["x", "y"]), ("message", ["bc"])]),
        ({"content": "<think>x</think>"}, [("reasoning", ["x"])]),
        ({"content": "<think>never closed"}, [("message", ["<think>never closed"])]),
        ({"refusal": "no"}, [("message", ["no"])]),
        ({"content": "a", "refusal": "no"}, [("message", ["a", "no"])]),
    ],
)
def test_a_message_becomes_items_in_order(message, items):
    assert [sketch(item) for item in response(message).output] == items


def test_without_a_reasoning_parser_the_text_is_left_alone():
    assert response({"content": "<think>x</think>a"}, parser=False).output_text == "<think>x</think>a"


@pytest.mark.parametrize(
    ("message", "last"),
    [
        ({"content": "<think>x</think>a"}, NeMoGymResponseOutputMessageForTraining),
        ({"content": "a", "tool_calls": [CALL]}, NeMoGymResponseFunctionToolCallForTraining),
        ({"content": "<think>x</think>"}, NeMoGymResponseReasoningItemForTraining),
    ],
)
def test_tokens_go_with_the_last_item_alone(message, last):
    output = response({**message, **TOKENS}).output
    assert type(output[-1]) is last
    assert output[-1].generation_token_ids == [2]
    assert not any(hasattr(item, "prompt_token_ids") for item in output[:-1])


@pytest.mark.parametrize(
    ("finish", "status", "reason"),
    [
        ("stop", "completed", None),
        ("tool_calls", "completed", None),
        ("length", "incomplete", "max_output_tokens"),
        ("content_filter", "incomplete", "content_filter"),
    ],
)
def test_the_finish_reason_says_whether_the_response_is_complete(finish, status, reason):
    found = response({"content": "a"}, finish=finish)
    assert (found.status, found.incomplete_details and found.incomplete_details.reason) == (status, reason)


COUNTS = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 6}


@pytest.mark.parametrize(
    ("more", "cached", "reasoning"),
    [
        ({}, None, None),
        ({"prompt_tokens_details": {"cached_tokens": 0}}, 0, None),
        ({"prompt_tokens_details": {"cached_input_tokens": 4}}, 4, None),
        ({"cache_read_input_tokens": 5}, 5, None),
        ({"completion_tokens_details": {"reasoning_tokens": 6}}, None, 6),
        ({"reasoning_output_tokens": 7}, None, 7),
    ],
)
def test_usage_is_copied_and_what_is_missing_stays_null(more, cached, reasoning):
    usage = response({"content": "a"}, usage={**COUNTS, **more}).usage
    assert (usage.input_tokens, usage.output_tokens, usage.total_tokens) == (3, 2, 6)
    assert usage.input_tokens_details.cached_tokens == cached
    assert usage.output_tokens_details.reasoning_tokens == reasoning


def test_no_usage_stays_null():
    assert response({"content": "a"}).usage is None


def test_the_request_is_echoed_and_ids_have_their_prefixes():
    found = response({"content": "<think>x</think>a"}, native_finish_reason="eos")
    dumped = found.model_dump(exclude_unset=True)
    assert (found.model, found.created_at, found.temperature) == ("asked", 7, 0.5)
    assert dumped["metadata"] == {"a": "b"}
    assert dumped["native_finish_reason"] == "eos"
    assert [item.id[:3] for item in found.output] == ["rs_", "msg"]
    assert found.id.startswith("resp_")
    assert "input" not in dumped


def test_the_envelope_id_is_kept_on_request():
    converter = ResponsesConverter(return_token_id_information=False)
    chat = completion({"content": "a"})
    assert converter.chat_completion_to_response(REQUEST, chat, preserve_envelope_id=True).id == "chat-1"


def test_only_the_first_choice_is_read():
    chat = completion({"content": "first"})
    chat.choices.append(completion({"content": "second"}).choices[0])
    converter = ResponsesConverter(return_token_id_information=False)
    assert converter.chat_completion_to_response(REQUEST, chat).output_text == "first"


def test_postprocessing_a_choice_gives_its_items():
    converter = ResponsesConverter(return_token_id_information=False)
    items = converter.postprocess_chat_response(completion({"content": "<think>x</think>a"}).choices[0])
    assert [item.type for item in items] == ["reasoning", "message"]


def test_one_assistant_message_becomes_the_items_that_it_says():
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    message = {"role": "assistant", "content": "<think>hm</think>hello", "tool_calls": [call]}
    items = ResponsesConverter(return_token_id_information=True).postprocess_assistant_message_dict(message)
    assert [item.type for item in items] == ["reasoning", "message", "function_call"]
    assert (items[0].summary[0].text, items[1].content[0].text, items[2].call_id) == ("hm", "hello", "c1")


@pytest.mark.parametrize(
    ("content", "thoughts", "text"),
    [("a<think>x</think>b<think>\ny</think>", ["x", "\ny"], "ab"), ("plain", [], "plain"), ("", [], "")],
)
def test_thoughts_are_cut_out_of_a_text_and_put_around_one_again(content, thoughts, text):
    converter = ResponsesConverter(return_token_id_information=False)
    assert converter._extract_reasoning_from_content(content) == (thoughts, text)
    wrapped = converter._wrap_reasoning_in_think_tags(thoughts)
    assert converter._extract_reasoning_from_content(wrapped) == (thoughts, "")
