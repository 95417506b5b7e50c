import pytest

from rollbook.servers.converter.responses_converter import (
    ResponsesConverter,
    chat_completion_to_responses_create_params,
    chat_completions_messages_to_responses_items,
    split_responses_input_output_items,
)
from rollbook.servers.openai.openai_chat import NeMoGymChatCompletionCreateParamsNonStreaming
from rollbook.servers.openai.openai_items import NeMoGymResponseFunctionToolCall

CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
CONVERSATION = [
    {"role": "system", "content": "s"},
    {"role": "user", "content": [{"type": "text", "text": "q"}]},
    {"role": "assistant", "content": "<think>hm</think>a", "tool_calls": [CALL]},
    {"role": "tool", "content": "r", "tool_call_id": "c1"},
    {"role": "user", "content": "and?"},
]


def chat(**body):
    return NeMoGymChatCompletionCreateParamsNonStreaming.model_validate({"messages": CONVERSATION, **body})


def responses(**body):
    return chat_completion_to_responses_create_params(chat(**body)).model_dump(exclude_unset=True)


def test_messages_there_and_back_are_the_same():
    converter = ResponsesConverter(return_token_id_information=False)
    request = converter.chat_completion_to_responses_create_params(chat())
    assert converter.responses_to_chat_completion_create_params(request).messages == CONVERSATION


def test_an_assistant_message_becomes_its_items():
    items = chat_completions_messages_to_responses_items(CONVERSATION)
    kinds = ["message", "message", "reasoning", "message", "function_call", "function_call_output", "message"]
    assert [item.type for item in items] == kinds


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"max_completion_tokens": 9}, {"max_output_tokens": 9}),
        ({"max_tokens": 8}, {"max_output_tokens": 8}),
        ({"reasoning_effort": "low"}, {"reasoning": {"effort": "low"}}),
        ({"verbosity": "low"}, {"text": {"verbosity": "low"}}),
        ({"response_format": {"type": "json_object"}}, {"text": {"format": {"type": "json_object"}}}),
        (
            {"response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": {}}}},
            {"text": {"format": {"type": "json_schema", "name": "n", "schema": {}}}},
        ),
        ({"tools": [TOOL]}, {"tools": [{"type": "function", "name": "f", "parameters": {"type": "object"}}]}),
        (
            {"tool_choice": {"type": "function", "function": {"name": "f"}}},
            {"tool_choice": {"type": "function", "name": "f"}},
        ),
        ({"temperature": 0.5, "stream": False}, {"temperature": 0.5}),
    ],
)
def test_chat_parameters_are_renamed_back(body, expected):
    request = responses(**body)
    assert request.pop("input")
    assert request == expected


def test_a_chat_parameter_without_a_counterpart_is_refused_by_name():
    with pytest.raises(NotImplementedError, match="seed, stop"):
        responses(seed=1, stop=["x"])


@pytest.mark.parametrize(
    ("items", "cut"),
    [
        ([], 0),
        ([{"role": "user"}], 1),
        ([{"role": "user"}, {"type": "reasoning"}, {"role": "user"}], 1),
        ([{"role": "system"}, {"role": "user"}, {"role": "assistant"}], 2),
        ([NeMoGymResponseFunctionToolCall(call_id="c", name="f", arguments="{}")], 0),
    ],
)
def test_items_are_split_at_the_first_one_that_the_model_made(items, cut):
    assert split_responses_input_output_items(items) == (items[:cut], items[cut:])
