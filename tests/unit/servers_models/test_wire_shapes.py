import json
import os
from pathlib import Path

import pytest
from pydantic import Field, PrivateAttr, SecretStr, ValidationError

from rollbook.servers.openai.openai_chat import (
    CHAT_REQUEST_PROVIDER_EXTENSION_FIELDS,
    NeMoGymChatCompletion,
    NeMoGymChatCompletionCreateParamsNonStreaming,
    NeMoGymChatCompletionMessageForTraining,
)
from rollbook.servers.openai.openai_chat_params import (
    NeMoGymChatCompletionAssistantMessageParam,
    NeMoGymChatCompletionSystemMessageParam,
    NeMoGymChatCompletionToolMessageParam,
    NeMoGymChatCompletionUserMessageParam,
)
from rollbook.servers.openai.openai_items import (
    NeMoGymEasyInputMessage,
    NeMoGymFunctionCallOutput,
    NeMoGymHostedItem,
    NeMoGymItemReference,
    NeMoGymMessage,
    NeMoGymResponseFunctionToolCall,
    NeMoGymResponseMcpCall,
    NeMoGymResponseOutputMessage,
    NeMoGymResponseReasoningItem,
)
from rollbook.servers.openai.openai_parts import (
    NeMoGymReasoningText,
    NeMoGymResponseInputText,
    NeMoGymResponseOutputText,
    NeMoGymSummary,
)
from rollbook.servers.openai.openai_response import NeMoGymResponse, NeMoGymResponseCreateParamsNonStreaming
from rollbook.servers.openai.openai_training import (
    REQUIRED_TOKEN_METADATA_FIELDS,
    RESPONSES_TO_TRAIN,
    TOKEN_METADATA_FIELDS,
    NeMoGymEasyInputMessageForTraining,
    NeMoGymMessageForTraining,
    NeMoGymResponseFunctionToolCallForTraining,
    NeMoGymResponseOutputMessageForTraining,
    NeMoGymResponseReasoningItemForTraining,
    TokenIDLogProbMixin,
    training_variant_of,
)
from rollbook.servers.openai.openai_usage import (
    NeMoGymResponseInputTokensDetails,
    NeMoGymResponseOutputTokensDetails,
    NeMoGymResponseUsage,
    accumulate_response_usage,
)

TOKENS = {"prompt_token_ids": [1, 2, 3], "generation_token_ids": [7, 8], "generation_log_probs": [-0.1, -0.2]}
TEXT = {"type": "output_text", "text": "4", "annotations": []}
MESSAGE = {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": [TEXT]}
REASONING = {"id": "rs_1", "type": "reasoning", "summary": [{"type": "summary_text", "text": "think"}]}
CALL = {"type": "function_call", "call_id": "c1", "name": "look_up", "arguments": '{"a": 1}'}
OUTPUT = {"type": "function_call_output", "call_id": "c1", "output": "teal"}
USAGE = {
    "input_tokens": 3,
    "input_tokens_details": {"cached_tokens": 1},
    "output_tokens": 2,
    "output_tokens_details": {"reasoning_tokens": 0},
    "total_tokens": 5,
}
FRAME = {
    "id": "resp_1",
    "created_at": 5.0,
    "model": "tiny",
    "object": "response",
    "parallel_tool_calls": True,
    "tool_choice": "auto",
    "tools": [],
}


def response(*items, **more):
    return NeMoGymResponse.model_validate({**FRAME, "output": list(items), **more})


def params(**body):
    return NeMoGymResponseCreateParamsNonStreaming.model_validate({"input": "hi", **body})


@pytest.mark.parametrize(
    ("item", "cls"),
    [
        ({"role": "user", "content": "hi"}, NeMoGymEasyInputMessage),
        ({"role": "user", "content": "hi", "type": "message"}, NeMoGymEasyInputMessage),
        ({"role": "assistant", "content": [TEXT]}, NeMoGymEasyInputMessage),
        ({"role": "assistant", "tool_calls": [{"id": "c1"}]}, NeMoGymEasyInputMessage),
        ({"role": "user", "content": [{"type": "input_text", "text": "hi"}], "type": "message"}, NeMoGymMessage),
        (MESSAGE, NeMoGymResponseOutputMessage),
        (REASONING, NeMoGymResponseReasoningItem),
        (CALL, NeMoGymResponseFunctionToolCall),
        (OUTPUT, NeMoGymFunctionCallOutput),
        ({key: value for key, value in CALL.items() if key != "type"}, NeMoGymResponseFunctionToolCall),
        ({key: value for key, value in OUTPUT.items() if key != "type"}, NeMoGymFunctionCallOutput),
        ({key: value for key, value in REASONING.items() if key != "type"}, NeMoGymResponseReasoningItem),
        ({"id": "msg_1"}, NeMoGymItemReference),
        ({"type": "web_search_call", "id": "ws_1", "action": {"type": "search"}}, NeMoGymHostedItem),
        ({"role": "user", "content": "hi", **TOKENS}, NeMoGymEasyInputMessageForTraining),
        ({"role": "user", "content": [], "type": "message", **TOKENS}, NeMoGymMessageForTraining),
        ({**MESSAGE, **TOKENS}, NeMoGymResponseOutputMessageForTraining),
        ({**CALL, **TOKENS}, NeMoGymResponseFunctionToolCallForTraining),
        ({**REASONING, **TOKENS}, NeMoGymResponseReasoningItemForTraining),
    ],
)
def test_an_input_item_becomes_the_class_that_its_shape_says(item, cls):
    assert type(params(input=[item]).input[0]) is cls


@pytest.mark.parametrize(
    "body",
    [
        {"temprature": 1.0},
        {"stream": True},
        {"input": [{"content": "no role"}]},
        {"input": [{"role": "user"}]},
        {"input": [{"role": "tool", "content": "x"}]},
        {"input": [{"type": "unheard_of"}]},
        {"tools": [{"name": "untyped"}]},
        {"tools": [{"type": "function"}]},
        {"tool_choice": "maybe"},
        {"tool_choice": {"name": "untyped"}},
        {"metadata": {"seed": 1}},
        {"truncation": "sometimes"},
    ],
)
def test_a_request_that_the_dialect_does_not_have_is_refused(body):
    with pytest.raises(ValidationError):
        params(**body)


def test_an_error_speaks_of_the_form_that_was_meant():
    with pytest.raises(ValidationError) as raised:
        params(input=[{"role": "user", "content": [{"type": "input_text"}]}])
    assert [detail["loc"] for detail in raised.value.errors()] == [
        ("input", "list", 0, "easy", "content", "list", 0, "input_text", "text")
    ]


def test_an_output_item_without_a_type_is_an_error():
    with pytest.raises(ValidationError, match="needs a `type`"):
        response({key: value for key, value in MESSAGE.items() if key != "type"})


@pytest.mark.parametrize("missing", list(TOKENS))
def test_a_part_of_the_token_keys_is_an_error(missing):
    some = {key: value for key, value in TOKENS.items() if key != missing}
    with pytest.raises(ValidationError, match=missing):
        response({**MESSAGE, **some})


@pytest.mark.parametrize("item", [MESSAGE, REASONING, CALL, OUTPUT, {**MESSAGE, **TOKENS}])
def test_a_response_comes_back_out_as_it_came_in(item):
    given = {**FRAME, "output": [item], "usage": USAGE, "native_finish_reason": "stop", "status": "completed"}
    assert NeMoGymResponse.model_validate(given).model_dump(exclude_unset=True, mode="json") == given


def test_any_output_can_be_appended_to_the_next_input():
    echoed = [
        {**REASONING, "status": "completed", "encrypted_content": None},
        {**CALL, "namespace": None, "caller": None, "id": "fc_1"},
        {**OUTPUT, "internal": 1},
        {**MESSAGE, "provider": "x"},
    ]
    replayed = params(input=[{"role": "user", "content": "q"}, *echoed]).model_dump(exclude_unset=True)["input"]
    assert replayed[1:] == [REASONING, {**CALL, "id": "fc_1"}, OUTPUT, MESSAGE]


def test_a_full_dump_of_a_response_validates_again():
    first = response({**REASONING, **TOKENS}, CALL, OUTPUT, {**MESSAGE, **TOKENS}, usage=USAGE)
    assert NeMoGymResponse.model_validate(first.model_dump()) == first


def test_items_built_by_name_say_their_type_when_unset_fields_are_left_out():
    built = [
        NeMoGymResponseOutputMessage(id="m", content=[NeMoGymResponseOutputText(text="x")]),
        NeMoGymFunctionCallOutput(call_id="c", output="o"),
        NeMoGymResponseFunctionToolCall(call_id="c", name="f", arguments="{}"),
        NeMoGymResponseReasoningItem(id="r", summary=[]),
    ]
    dumped = response(*built).model_dump(exclude_unset=True)["output"]
    assert [item["type"] for item in dumped] == ["message", "function_call_output", "function_call", "reasoning"]
    assert dumped[0]["content"] == [{"type": "output_text", "text": "x", "annotations": []}]


def with_own_fields(base, **fields):
    """Return an instance of a subclass of `base` that has fields of its own, some of which are not to be told."""

    class Own(base):
        own: int = 3
        kept_back: str = Field("untold", exclude=True)
        key: SecretStr = SecretStr("untold")
        _private: str = PrivateAttr("untold")

    return Own(**fields)


PARTS = {
    "input_text": lambda: NeMoGymMessage(role="user", content=[with_own_fields(NeMoGymResponseInputText, text="t")]),
    "output_text": lambda: NeMoGymResponseOutputMessage(
        id="m", content=[with_own_fields(NeMoGymResponseOutputText, text="t", annotations=[])]
    ),
    "easy": lambda: NeMoGymEasyInputMessage(role="user", content=[with_own_fields(NeMoGymResponseInputText, text="t")]),
    "tool": lambda: NeMoGymFunctionCallOutput(
        call_id="c", output=[with_own_fields(NeMoGymResponseInputText, text="t")]
    ),
    "summary": lambda: NeMoGymResponseReasoningItem(id="r", summary=[with_own_fields(NeMoGymSummary, text="t")]),
    "reasoning_text": lambda: NeMoGymResponseReasoningItem(
        id="r", summary=[], content=[with_own_fields(NeMoGymReasoningText, text="t")]
    ),
    "item": lambda: with_own_fields(NeMoGymResponseFunctionToolCall, call_id="c", name="n", arguments="{}"),
}


@pytest.mark.parametrize("place", PARTS)
def test_the_own_fields_of_a_subclass_are_written_and_what_it_keeps_back_is_not(place):
    request = NeMoGymResponseCreateParamsNonStreaming(input=[PARTS[place]()])
    for written in (request.model_dump_json(), json.dumps(request.model_dump(mode="json"))):
        assert written.replace(" ", "").count('"own":3') == 1
        assert "untold" not in written


def test_output_text_joins_the_text_parts_of_messages_only():
    second = {
        **MESSAGE,
        "content": [{**TEXT, "text": "a"}, {"type": "refusal", "refusal": "no"}, {**TEXT, "text": "b"}],
    }
    assert response(REASONING, MESSAGE, CALL, OUTPUT, second).output_text == "4ab"


def test_extra_fields_of_tools_are_dropped_so_that_an_echo_can_be_sent_again():
    echo = {"type": "function", "name": "f", "parameters": {"type": "object"}, "strict": True, "output_schema": None}
    assert params(tools=[echo]).tools == [{key: value for key, value in echo.items() if key != "output_schema"}]


def test_a_content_part_reads_like_a_mapping():
    part = NeMoGymResponseInputText(text="hi")
    assert (part["text"], part.get("detail", "none"), dict(part), "text" in part) == (
        "hi",
        "none",
        {"text": "hi", "type": "input_text"},
        True,
    )
    with pytest.raises(KeyError):
        part["image_url"]


@pytest.mark.parametrize(("base", "variant"), RESPONSES_TO_TRAIN.items())
def test_every_trainable_class_has_a_variant_that_is_its_own(base, variant):
    assert training_variant_of(base) is variant
    assert training_variant_of(variant) is variant
    assert issubclass(variant, base)


def test_a_class_without_tokens_has_no_training_variant():
    with pytest.raises(TypeError, match="NeMoGymFunctionCallOutput"):
        training_variant_of(NeMoGymFunctionCallOutput)


def usage(cached, reasoning):
    return NeMoGymResponseUsage(
        input_tokens=3,
        input_tokens_details=NeMoGymResponseInputTokensDetails(cached_tokens=cached),
        output_tokens=2,
        output_tokens_details=NeMoGymResponseOutputTokensDetails(reasoning_tokens=reasoning),
        total_tokens=5,
    )


@pytest.mark.parametrize(
    ("total", "new", "cached", "reasoning"),
    [
        (usage(1, 2), usage(10, 20), 11, 22),
        (usage(None, 2), usage(None, 20), None, 22),
        (usage(None, None), usage(10, None), None, None),
        (usage(0, None), usage(None, 0), None, None),
        (usage(0, 0), usage(0, 0), 0, 0),
    ],
)
def test_a_usage_sum_is_null_where_a_part_of_it_is_not_known(total, new, cached, reasoning):
    summed = accumulate_response_usage(total, new)
    assert (summed.input_tokens, summed.output_tokens, summed.total_tokens) == (6, 4, 10)
    assert summed.input_tokens_details.cached_tokens == cached
    assert summed.output_tokens_details.reasoning_tokens == reasoning


def test_the_usage_of_many_responses_is_their_sum_and_that_of_none_is_zero():
    summed = NeMoGymResponseUsage.sum_from_list([usage(1, 2), None, usage(10, None), usage(100, 1)])
    assert (summed.input_tokens, summed.output_tokens, summed.total_tokens) == (9, 6, 15)
    assert summed.input_tokens_details.cached_tokens == 111
    assert summed.output_tokens_details.reasoning_tokens is None
    assert NeMoGymResponseUsage.sum_from_list([]).model_dump() == {
        "input_tokens": 0,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": 0,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 0,
    }


def test_a_usage_sum_with_nothing_is_the_other_as_a_value_of_its_own():
    only = usage(1, 2)
    assert accumulate_response_usage(None, None) is None
    assert accumulate_response_usage(None, only) == only
    assert accumulate_response_usage(only, None) is not only


def test_a_chat_message_with_tokens_is_the_training_variant():
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "4", **TOKENS}}
    completion = NeMoGymChatCompletion.model_validate({"id": "c", "created": 1, "model": "m", "choices": [choice]})
    assert type(completion.choices[0].message) is NeMoGymChatCompletionMessageForTraining


def test_a_chat_request_with_an_unknown_field_is_refused():
    messages = [{"role": "user", "content": "hi"}]
    kept = {"messages": messages, "thinking": {"type": "enabled"}, "chat_template_kwargs": {"a": 1}}
    assert NeMoGymChatCompletionCreateParamsNonStreaming.model_validate(kept).model_dump(exclude_unset=True) == kept
    with pytest.raises(ValidationError, match="top_k"):
        NeMoGymChatCompletionCreateParamsNonStreaming.model_validate({"messages": messages, "top_k": 1})


CHECKOUT = Path(__file__).resolve().parents[3]
SHARED_DATA = Path(os.environ.get("ROLLBOOK_SHARED_DATA") or CHECKOUT.parent / "shared" / "data" / "rows")
SHARED_ROWS = sorted(SHARED_DATA.glob("*.jsonl"))


@pytest.mark.skipif(not SHARED_ROWS, reason=f"no task rows at {SHARED_DATA}")
@pytest.mark.parametrize("path", SHARED_ROWS, ids=lambda path: path.stem)
def test_the_requests_of_real_rows_come_back_out_as_they_came_in(path):
    for line in path.read_text("utf-8").splitlines():
        asked = json.loads(line).get("responses_create_params")
        if asked is not None:
            model = NeMoGymResponseCreateParamsNonStreaming.model_validate(asked)
            assert model.model_dump(exclude_unset=True, mode="json") == asked


def test_the_names_of_token_fields_are_those_that_a_training_item_has():
    assert set(REQUIRED_TOKEN_METADATA_FIELDS) < set(TOKEN_METADATA_FIELDS) == set(TokenIDLogProbMixin.model_fields)


def test_the_fields_that_vendors_added_are_fields_of_a_chat_request():
    assert set(NeMoGymChatCompletionCreateParamsNonStreaming.model_fields) > CHAT_REQUEST_PROVIDER_EXTENSION_FIELDS


@pytest.mark.parametrize(
    "message",
    [
        NeMoGymChatCompletionSystemMessageParam(role="system", content="Be brief."),
        NeMoGymChatCompletionUserMessageParam(role="user", content=[{"type": "text", "text": "2+2?"}]),
        NeMoGymChatCompletionAssistantMessageParam(role="assistant", content=None, tool_calls=[]),
        NeMoGymChatCompletionToolMessageParam(role="tool", content="4", tool_call_id="call_1"),
    ],
)
def test_a_message_of_every_role_is_taken_as_it_is_written(message):
    request = NeMoGymChatCompletionCreateParamsNonStreaming(messages=[message])
    assert request.model_dump(exclude_unset=True)["messages"] == [message]


def test_a_call_that_the_provider_made_over_mcp_stands_in_a_response_as_it_is():
    call = NeMoGymResponseMcpCall(id="mcp_1", name="roll_dice", arguments="{}", server_label="dice", output="4")
    frame = {"id": "r", "created_at": 0, "model": "m", "object": "response", "parallel_tool_calls": False}
    response = NeMoGymResponse.model_validate({**frame, "tools": [], "tool_choice": "auto", "output": [call]})
    [told] = response.model_dump(mode="json", exclude_unset=True)["output"]
    said = {"id": "mcp_1", "name": "roll_dice", "arguments": "{}", "server_label": "dice", "output": "4"}
    assert told == {"type": "mcp_call", **said}


def test_the_status_of_a_thought_is_read_and_goes_nowhere():
    thought = {"id": "rs_1", "type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]}
    frame = {"id": "r", "created_at": 0, "model": "m", "object": "response", "parallel_tool_calls": False}
    given = {**frame, "tools": [], "tool_choice": "auto", "output": [{**thought, "status": "completed"}]}
    response = NeMoGymResponse.model_validate(given)
    assert response.model_dump(mode="json", exclude_unset=True)["output"] == [thought]
    assert "status" not in response.model_dump()["output"][0]
    assert response.output[0].status == "completed"
