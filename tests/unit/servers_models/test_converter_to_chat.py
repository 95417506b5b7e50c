import pytest

from rollbook.servers.converter.responses_converter import ResponsesConverter
from rollbook.servers.openai.openai_response import NeMoGymResponseCreateParamsNonStreaming

TOKENS = {"prompt_token_ids": [1], "generation_token_ids": [2], "generation_log_probs": [-0.5]}
USER = {"role": "user", "content": "q"}
THOUGHT = {"type": "reasoning", "id": "rs", "summary": [{"type": "summary_text", "text": "hm"}]}
SAID = {
    "type": "message",
    "id": "msg",
    "role": "assistant",
    "status": "completed",
    "content": [{"type": "output_text", "text": "a", "annotations": []}],
}
CALL = {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"}
RESULT = {"type": "function_call_output", "call_id": "c1", "output": "r"}
CHAT_CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}


def chat(tokens=False, **body):
    request = NeMoGymResponseCreateParamsNonStreaming.model_validate({"input": "q", **body})
    converter = ResponsesConverter(return_token_id_information=tokens)
    return converter.responses_to_chat_completion_create_params(request).model_dump(exclude_unset=True)


def image(**fields):
    return {"role": "user", "content": [{"type": "input_image", **fields}]}


@pytest.mark.parametrize(
    ("items", "messages"),
    [
        ("q", [{"role": "user", "content": [{"type": "text", "text": "q"}]}]),
        ([USER], [USER]),
        ([{"role": "developer", "content": "d"}, USER], [{"role": "developer", "content": "d"}, USER]),
        (
            [USER, THOUGHT, SAID, CALL, RESULT, USER],
            [
                USER,
                {"role": "assistant", "content": "<think>hm</think>a", "tool_calls": [CHAT_CALL]},
                {"role": "tool", "content": "r", "tool_call_id": "c1"},
                USER,
            ],
        ),
        ([USER, CALL], [USER, {"role": "assistant", "content": None, "tool_calls": [CHAT_CALL]}]),
        ([USER, SAID, SAID], [USER, {"role": "assistant", "content": "aa"}]),
        (
            [USER, {**SAID, "content": [{"type": "refusal", "refusal": "no"}]}],
            [USER, {"role": "assistant", "content": None, "refusal": "no"}],
        ),
        (
            [USER, {"role": "assistant", "tool_calls": [CHAT_CALL]}, RESULT],
            [
                USER,
                {"role": "assistant", "content": None, "tool_calls": [CHAT_CALL]},
                {"role": "tool", "content": "r", "tool_call_id": "c1"},
            ],
        ),
        (
            [{**RESULT, "output": [{"type": "input_text", "text": "r"}]}],
            [{"role": "tool", "content": [{"type": "text", "text": "r"}], "tool_call_id": "c1"}],
        ),
        (
            [image(image_url="http://x/y.png")],
            [
                {
                    "role": "user",
                    "content": [{"type": "image_url", "image_url": {"url": "http://x/y.png", "detail": "auto"}}],
                }
            ],
        ),
        (
            [{"role": "user", "content": [{"type": "input_video", "video_url": "http://x/v.mp4"}]}],
            [{"role": "user", "content": [{"type": "video_url", "video_url": {"url": "http://x/v.mp4"}}]}],
        ),
        ([USER, {"role": "assistant", "content": None}], [USER, {"role": "assistant", "content": None}]),
    ],
)
def test_items_become_messages(items, messages):
    assert chat(input=items)["messages"] == messages


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"max_output_tokens": 9}, {"max_tokens": 9}),
        ({"reasoning": {"effort": "low", "summary": None}}, {"reasoning_effort": "low"}),
        ({"text": {"verbosity": "low"}}, {"verbosity": "low"}),
        ({"text": {"format": {"type": "text"}}}, {}),
        ({"text": {"format": {"type": "json_object"}}}, {"response_format": {"type": "json_object"}}),
        (
            {"text": {"format": {"type": "json_schema", "name": "n", "schema": {}, "strict": None}}},
            {"response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": {}}}},
        ),
        ({"temperature": 0.5, "top_p": 0.9, "user": "u"}, {"temperature": 0.5, "top_p": 0.9, "user": "u"}),
        ({"temperature": None, "background": None, "include": None}, {}),
        ({"tools": [], "parallel_tool_calls": False, "tool_choice": "auto"}, {}),
        (
            {"tools": [{"type": "function", "name": "f", "parameters": {"a": 1}, "strict": True, "description": None}]},
            {"tools": [{"type": "function", "function": {"name": "f", "parameters": {"a": 1}, "strict": True}}]},
        ),
        (
            {
                "tools": [
                    {
                        "type": "custom",
                        "name": "f",
                        "format": {"type": "grammar", "syntax": "lark", "definition": "x"},
                    }
                ],
                "tool_choice": {"type": "custom", "name": "f"},
                "parallel_tool_calls": False,
            },
            {
                "tools": [
                    {
                        "type": "custom",
                        "custom": {
                            "name": "f",
                            "format": {"type": "grammar", "grammar": {"syntax": "lark", "definition": "x"}},
                        },
                    }
                ],
                "tool_choice": {"type": "custom", "custom": {"name": "f"}},
                "parallel_tool_calls": False,
            },
        ),
        (
            {
                "tools": [{"type": "function", "name": "f"}],
                "tool_choice": {
                    "type": "allowed_tools",
                    "mode": "auto",
                    "tools": [{"type": "function", "name": "f"}],
                },
            },
            {
                "tools": [{"type": "function", "function": {"name": "f"}}],
                "tool_choice": {
                    "type": "allowed_tools",
                    "allowed_tools": {"mode": "auto", "tools": [{"type": "function", "function": {"name": "f"}}]},
                },
            },
        ),
    ],
)
def test_parameters_are_renamed(body, expected):
    params = chat(**body)
    assert params.pop("messages")
    assert params == expected


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ({"background": False, "previous_response_id": "r"}, "background, previous_response_id"),
        ({"truncation": "auto"}, "truncation"),
        ({"reasoning": {"effort": "low", "summary": "auto"}}, "reasoning.summary"),
        ({"text": {"format": {"type": "grammar"}}}, "grammar"),
        ({"tools": [{"type": "web_search"}]}, "web_search"),
        ({"tools": [{"type": "function", "name": "f", "defer_loading": True}]}, "defer_loading"),
        ({"tools": [{"type": "function", "name": "f"}], "tool_choice": {"type": "mcp"}}, "mcp"),
        ({"input": [{**CALL, "namespace": "ns"}]}, "ns.f"),
        ({"input": [{**SAID, "phase": "commentary"}]}, "commentary"),
        ({"input": [{**USER, "phase": "commentary"}]}, "commentary"),
        ({"input": [{"type": "web_search_call", "id": "w"}]}, "web_search_call"),
        ({"input": [{"role": "user", "content": [{"type": "input_file", "file_id": "f"}]}]}, "input_file"),
        ({"input": [image(file_id="f")]}, "file_id"),
        ({"input": [image(image_url="http://x", detail="original")]}, "original"),
        ({"input": [{**RESULT, "output": [{"type": "input_image", "image_url": "http://x"}]}]}, "input_image"),
    ],
)
def test_what_chat_cannot_say_is_refused_by_name(body, named):
    with pytest.raises(NotImplementedError, match=named):
        chat(**body)


@pytest.mark.parametrize(
    "body", [{"tool_choice": "required"}, {"tool_choice": {"type": "function", "name": "f"}}, {"input": [image()]}]
)
def test_a_request_that_contradicts_itself_is_refused(body):
    with pytest.raises(ValueError, match=r"tool_choice|image_url"):
        chat(**body)


def test_instructions_join_the_leading_system_messages_and_no_later_one():
    leading = [
        {"role": "system", "content": "s"},
        {"role": "developer", "content": [{"type": "input_text", "text": "d"}]},
    ]
    items = [*leading, USER, {"role": "system", "content": "late"}]
    messages = chat(input=items, instructions="i")["messages"]
    assert messages == [{"role": "system", "content": "i\n\ns\n\nd"}, USER, {"role": "system", "content": "late"}]


def test_without_instructions_system_messages_stay_as_they_are():
    items = [{"role": "system", "content": "a"}, {"role": "system", "content": "b"}, USER]
    assert chat(input=items)["messages"] == items


def test_a_turn_carries_the_tokens_of_its_latest_item_when_they_are_wanted():
    later = {**TOKENS, "generation_token_ids": [9]}
    items = [USER, {**THOUGHT, **TOKENS}, {**CALL, **later}]
    assert chat(tokens=True, input=items)["messages"][1]["generation_token_ids"] == [9]
    assert "generation_token_ids" not in chat(input=items)["messages"][1]
