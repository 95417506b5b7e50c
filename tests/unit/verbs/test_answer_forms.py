"""What a gold answer may be written as."""

import json

import pytest

from rollbook.verbs.answer_forms import verify_request

ROW = {"responses_create_params": {"input": "?"}, "expected_answer": "4"}


def output(answer):
    return verify_request(ROW, answer)["response"]["output"]


def test_a_text_is_one_message_and_a_list_has_an_item_each():
    [alone], [first, second] = output("4"), output(["a", "b"])
    assert alone["content"][0]["text"] == "4"
    assert [item["content"][0]["text"] for item in (first, second)] == ["a", "b"]
    assert first["id"] != second["id"]


def test_a_name_with_arguments_is_a_tool_call_and_a_whole_item_stays_as_it_is():
    whole = {"type": "function_call", "call_id": "mine", "name": "add", "arguments": "{}"}
    call, kept = output([{"name": "add", "arguments": {"n": 1}}, whole])
    assert (call["type"], call["name"], json.loads(call["arguments"])) == ("function_call", "add", {"n": 1})
    assert kept == whole


def test_arguments_that_are_a_text_stay_the_json_that_they_are():
    [call] = output([{"name": "add", "arguments": '{"n": 1}'}])
    assert call["arguments"] == '{"n": 1}'


def test_a_whole_response_is_taken_and_the_row_is_kept():
    assert verify_request(ROW, {"id": "r"}) == {**ROW, "response": {"id": "r"}}


def test_what_is_no_answer_says_what_one_is():
    with pytest.raises(TypeError, match="4 is no answer; return a text, a list of output items, a whole response"):
        verify_request(ROW, 4)
