from hypothesis import given, settings
from hypothesis import strategies as st

from rollbook.servers.converter.responses_converter import ResponsesConverter, split_responses_input_output_items
from rollbook.servers.openai.openai_chat import NeMoGymChatCompletionCreateParamsNonStreaming
from thoroughness import examples

text = st.text(st.characters(exclude_characters="<>", exclude_categories=["Cs"]), min_size=1, max_size=12)
tokens = st.lists(st.integers(0, 9), max_size=3).map(
    lambda ids: {"prompt_token_ids": ids, "generation_token_ids": ids, "generation_log_probs": [-0.5] * len(ids)}
)


@st.composite
def assistant_turn(draw):
    thought = draw(st.none() | text)
    said = draw(st.none() | text)
    names = draw(st.lists(st.sampled_from("fgh"), max_size=2))
    calls = [
        {"id": f"{draw(st.uuids())}", "type": "function", "function": {"name": name, "arguments": draw(text)}}
        for name in names
    ]
    content = (f"<think>{thought}</think>" if thought else "") + (said or "")
    message = {"role": "assistant", "content": content or None, **draw(st.just({}) | tokens)}
    if calls:
        message["tool_calls"] = calls
    results = [{"role": "tool", "tool_call_id": call["id"], "content": draw(text)} for call in calls]
    return [message, *results]


@st.composite
def conversations(draw):
    messages = [{"role": "system", "content": draw(text)}] if draw(st.booleans()) else []
    for _ in range(draw(st.integers(1, 4))):
        messages.append({"role": "user", "content": draw(text)})
        messages.extend(draw(assistant_turn()))
    return messages


@settings(max_examples=examples(200), deadline=None)
@given(conversations())
def test_any_conversation_there_and_back_is_the_same(messages):
    converter = ResponsesConverter(return_token_id_information=True)
    chat = NeMoGymChatCompletionCreateParamsNonStreaming(messages=messages)
    request = converter.chat_completion_to_responses_create_params(chat)
    back = converter.responses_to_chat_completion_create_params(request).model_dump(exclude_unset=True)["messages"]
    assert [sorted(message.items()) for message in back] == [sorted(message.items()) for message in messages]


@given(conversations())
def test_splitting_items_loses_none_and_leaves_no_model_made_item_before_the_cut(messages):
    items = ResponsesConverter(return_token_id_information=False).chat_completions_messages_to_responses_items(messages)
    before, after = split_responses_input_output_items(items)
    assert [*before, *after] == items
    assert all(item.type == "message" and item.role != "assistant" for item in before)
