import pytest

from responses_api_models.vllm_model.model_config import VLLMModelConfig
from responses_api_models.vllm_model.shaping import ends_in_empty_assistant_turn, shaped, shaped_messages

USER = {"role": "user", "content": "q"}
TOOL = {"type": "function", "function": {"name": "f", "strict": True, "parameters": {}}}
CALL = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
THOUGHTFUL = {"role": "assistant", "content": "<think>x</think>a<think>y</think>b"}


def settings(**options):
    return VLLMModelConfig(
        host="127.0.0.1",
        port=1,
        entrypoint="app.py",
        name="policy_model",
        base_url="http://127.0.0.1:1/v1",
        api_key="k",
        model="m",
        **{"return_token_id_information": False, "uses_reasoning_parser": True, **options},
    )


def body_of(asked=None, **options):
    return shaped(settings(**options), {"messages": [USER], **(asked or {})}, "session-1")


@pytest.mark.parametrize(
    ("options", "asked", "expected"),
    [
        ({}, {"model": "asked"}, {"model": "m"}),
        ({}, {"tools": [TOOL]}, {"tools": [{"type": "function", "function": {"name": "f", "parameters": {}}}]}),
        ({}, {"top_logprobs": None}, {"top_logprobs": "absent"}),
        ({}, {"top_logprobs": 2}, {"top_logprobs": 2}),
        ({"chat_template_kwargs": {"a": 1}}, {}, {"chat_template_kwargs": {"a": 1}}),
        ({"chat_template_kwargs": {"a": 1}}, {"chat_template_kwargs": {"a": 2}}, {"chat_template_kwargs": {"a": 1}}),
        (
            {"chat_template_kwargs": {"a": 1, "b": 1}, "forward_request_chat_template_kwargs": True},
            {"chat_template_kwargs": {"a": 2, "c": 2}, "metadata": {"chat_template_kwargs": '{"c": 3}'}},
            {"chat_template_kwargs": {"a": 2, "b": 1, "c": 3}, "metadata": "absent"},
        ),
        ({}, {"chat_template_kwargs": {"a": 2}}, {"chat_template_kwargs": "absent"}),
        ({"extra_body": {"seed": 1, "temperature": 0.1}}, {"temperature": 0.7}, {"seed": 1, "temperature": 0.7}),
        (
            {"extra_body": {"seed": 1, "top_k": 1}},
            {"metadata": {"extra_body": '{"seed": 2}', "kept": "x"}},
            {"seed": 2, "top_k": 1, "metadata": {"kept": "x"}},
        ),
        (
            {"sampling_overrides": {"temperature": 0.0}, "extra_body": {"temperature": 0.1}},
            {"temperature": 0.7, "metadata": {"extra_body": '{"temperature": 0.2}'}},
            {"temperature": 0.0},
        ),
        ({"continue_final_assistant_message": True}, {}, {"continue_final_message": "absent"}),
        (
            {"forward_session_id_as_conversation_id": True},
            {},
            {"conversation_params": {"conversation_id": "session-1"}},
        ),
    ],
)
def test_a_request_is_shaped_so_that_the_later_step_wins(options, asked, expected):
    body = body_of(asked, **options)
    assert {key: body.get(key, "absent") for key in expected} == expected


@pytest.mark.parametrize("text", ["{cut", "[1]", '"seed"'])
def test_metadata_that_is_no_json_object_is_an_error_that_names_it(text):
    with pytest.raises(ValueError, match=r"metadata\.extra_body"):
        body_of({"metadata": {"extra_body": text}})


@pytest.mark.parametrize(
    ("options", "message", "expected"),
    [
        ({}, THOUGHTFUL, {"content": "a<think>y</think>b", "reasoning": "x", "reasoning_content": "x"}),
        ({"reasoning_field": "reasoning"}, THOUGHTFUL, {"content": "a<think>y</think>b", "reasoning": "x"}),
        ({"uses_interleaved_reasoning": False}, THOUGHTFUL, {"content": "a<think>y</think>b"}),
        ({"uses_reasoning_parser": False}, THOUGHTFUL, {"content": THOUGHTFUL["content"]}),
        ({"preserve_reasoning_in_assistant_content": True}, THOUGHTFUL, {"content": THOUGHTFUL["content"]}),
        (
            {"reasoning_field": "reasoning_content"},
            {"role": "assistant", "content": "<think>x</think>", "tool_calls": [CALL]},
            {"content": None, "tool_calls": [CALL], "reasoning_content": "x"},
        ),
        ({}, {"role": "assistant", "content": None, "tool_calls": [CALL]}, {"content": None, "tool_calls": [CALL]}),
        ({}, {"role": "user", "content": "<think>x</think>"}, {"content": "<think>x</think>"}),
    ],
)
def test_reasoning_is_cut_out_of_assistant_messages(options, message, expected):
    assert shaped_messages(settings(**options), [message]) == [{"role": message["role"], **expected}]


@pytest.mark.parametrize(("replaced", "role"), [(True, "system"), (False, "developer")])
def test_the_developer_role_becomes_system_where_it_is_to(replaced, role):
    given = [{"role": "developer", "content": "d"}]
    assert shaped_messages(settings(replace_developer_role_with_system=replaced), given)[0]["role"] == role


def test_shaping_changes_nothing_that_was_handed_in():
    asked = {"messages": [dict(THOUGHTFUL)], "tools": [TOOL], "metadata": {"extra_body": '{"seed": 1}'}}
    before = repr(asked)
    shaped(settings(), asked, "s")
    assert repr(asked) == before


@pytest.mark.parametrize(
    ("messages", "empty"),
    [
        ([], False),
        ([USER], False),
        ([USER, {"role": "assistant", "content": ""}], True),
        ([USER, {"role": "assistant"}], True),
        ([USER, {"role": "assistant", "content": "a"}], False),
        ([USER, {"role": "assistant", "content": None, "tool_calls": [CALL]}], False),
    ],
)
def test_an_empty_assistant_turn_has_neither_content_nor_calls(messages, empty):
    assert ends_in_empty_assistant_turn(messages) is empty
