import json

import pytest
from pydantic import ValidationError
from starlette.responses import JSONResponse

from responses_api_models.vllm_model.app import VLLMModel, VLLMModelConfig
from rollbook import BaseServerConfig, ServerClient
from unit.servers_models.serving import Endpoint, chat, error, post, serving

TOOL = {"type": "function", "name": "get_weather", "parameters": {"type": "object"}, "strict": True}
TOKENS = {"prompt_token_ids": [1, 2, 3], "generation_token_ids": [7, 8], "generation_log_probs": [-0.5, -0.25]}
ENTRIES = [
    {"token": f"token_id:{token}", "logprob": value, "bytes": None, "top_logprobs": []}
    for token, value in ((7, -0.5), (8, -0.25))
]


@pytest.fixture(scope="module")
def running():
    endpoint = Endpoint()
    with serving(endpoint.app()) as url:
        endpoint.base_url = f"{url}/v1"
        yield endpoint


@pytest.fixture
def endpoint(running):
    running.reset()
    return running


def settings(endpoint, **options):
    given = {
        "host": "127.0.0.1",
        "port": 1,
        "entrypoint": "app.py",
        "name": "policy_model",
        "base_url": endpoint.base_url,
        "api_key": "k",
        "model": "configured",
        "return_token_id_information": False,
        "uses_reasoning_parser": True,
    }
    return VLLMModelConfig.model_validate({**given, **options})


@pytest.fixture
def url(endpoint, request):
    client = ServerClient(BaseServerConfig(host="127.0.0.1", port=1), {})
    model = VLLMModel(config=settings(endpoint, **getattr(request, "param", {})), server_client=client)
    with serving(model.build_app()) as served:
        yield served


def with_options(*cases):
    return pytest.mark.parametrize("url", cases, indirect=True)


def ask(url, source="hi", **body):
    return post(f"{url}/v1/responses", {"input": source, **body})


def complete(url, *messages, **body):
    return post(f"{url}/v1/chat/completions", {"messages": list(messages), **body})


USER = {"role": "user", "content": "hi"}


def test_a_tool_call_and_its_result_go_round_over_chat_completions(endpoint, url):
    first = ask(url, [{"role": "user", "content": "Oslo?"}], tools=[TOOL]).json()
    (made,) = first["output"]
    assert (made["type"], made["name"], made["call_id"]) == ("function_call", "get_weather", "call-1")
    assert endpoint.last["tools"] == [
        {"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object"}}}
    ]
    result = {"type": "function_call_output", "call_id": "call-1", "output": "rain"}
    second = ask(url, [{"role": "user", "content": "Oslo?"}, made, result], tools=first["tools"]).json()
    assert second["output"][0]["content"][0]["text"] == "you said rain"
    assert [message["role"] for message in endpoint.last["messages"]] == ["user", "assistant", "tool"]
    assert second["usage"] == {
        "input_tokens": 3,
        "input_tokens_details": {"cached_tokens": None},
        "output_tokens": 2,
        "output_tokens_details": {"reasoning_tokens": None},
        "total_tokens": 5,
    }


def test_the_configured_model_is_always_asked(endpoint, url):
    assert ask(url, model="asked").json()["model"] == "asked"
    assert endpoint.last["model"] == "configured"


@pytest.mark.parametrize("name", ["reasoning_content", "reasoning"])
def test_reasoning_of_its_own_field_becomes_a_reasoning_item(endpoint, url, name):
    endpoint.answer = lambda _path, _body: chat({"content": "a", name: "hm"})
    output = ask(url).json()["output"]
    assert [item["type"] for item in output] == ["reasoning", "message"]
    assert output[0]["summary"] == [{"type": "summary_text", "text": "hm"}]


def test_reasoning_that_comes_twice_is_taken_once(endpoint, url):
    endpoint.answer = lambda _path, _body: chat({"content": None, "reasoning_content": "hm", "reasoning": "hm"})
    assert complete(url, USER).json()["choices"][0]["message"]["content"] == "<think>hm</think>"


@with_options({"uses_reasoning_parser": False})
def test_unexpected_reasoning_is_an_error_that_names_the_setting(endpoint, url):
    endpoint.answer = lambda _path, _body: chat({"content": "a", "reasoning_content": "hm"})
    reply = ask(url)
    assert (reply.status, "uses_reasoning_parser: true" in reply.json()) == (500, True)


def test_reasoning_goes_back_to_the_endpoint_in_its_own_fields(endpoint, url):
    thought = {"type": "reasoning", "id": "rs", "summary": [{"type": "summary_text", "text": "hm"}]}
    ask(url, [USER, thought, {"role": "assistant", "content": "a"}, USER])
    assert endpoint.last["messages"][1] == {
        "role": "assistant",
        "content": "a",
        "reasoning_content": "hm",
        "reasoning": "hm",
    }


@pytest.mark.parametrize("words", ["maximum context length is 10", "max_tokens is too large", "context size (10)"])
def test_a_full_context_is_an_answer_cut_off_by_length(endpoint, url, words):
    endpoint.script += [error(400, message=words)]
    reply = ask(url).json()
    assert (reply["status"], reply["incomplete_details"]) == ("incomplete", {"reason": "max_output_tokens"})
    assert reply["output"][0]["content"][0]["text"] == ""


@with_options({"propagate_context_overflow_errors": True})
def test_a_full_context_fails_the_call_when_it_is_to(endpoint, url):
    endpoint.script += [error(400, message="maximum context length is 10")]
    assert (ask(url).status, len(endpoint.seen)) == (500, 1)


@pytest.mark.parametrize("words", ["no such tool parser", "Unsupported parameter: 'max_tokens'"])
def test_another_bad_request_is_no_full_context(endpoint, url, words):
    endpoint.script += [error(400, message=words)]
    reply = ask(url)
    assert (reply.status, words[:10] in reply.json()) == (500, True)


@with_options(
    {"return_token_id_information": True},
    {"return_token_id_information": True, "request_prompt_and_generation_token_ids": True},
)
def test_tokens_come_with_the_last_item_from_whatever_source_is_complete(endpoint, url, request):
    by_id = "request_prompt_and_generation_token_ids" in request.node.callspec.params["url"]

    def answer(path, _body):
        if path == "/tokenize":
            return {"tokens": [1, 2, 3]}
        ids = {"token_ids": [7, 8]} if by_id else {}
        prompt = {"prompt_token_ids": [1, 2, 3]} if by_id else {}
        return chat({"content": "a", "reasoning": "hm"}, choice={"logprobs": {"content": ENTRIES}, **ids}, **prompt)

    endpoint.answer = answer
    output = ask(url).json()["output"]
    assert {key: output[-1].get(key) for key in TOKENS} == TOKENS
    assert "prompt_token_ids" not in output[0]
    sent = endpoint.seen[0][1]
    assert (sent["logprobs"], sent["top_logprobs"], sent["return_tokens_as_token_ids"]) == (True, 0, True)
    assert sent.get("return_token_ids", False) is by_id
    assert [path for path, _, _ in endpoint.seen[1:]] == ([] if by_id else ["/tokenize"])


@with_options({"return_token_id_information": True})
def test_the_next_turn_carries_the_tokens_of_the_turn_before(endpoint, url):
    endpoint.answer = lambda path, _body: chat({"content": "a", **TOKENS}) if path != "/tokenize" else {"tokens": []}
    first = ask(url).json()["output"]
    ask(url, [USER, *first, USER])
    assert {key: endpoint.last["messages"][1][key] for key in TOKENS} == TOKENS


@with_options({"return_token_id_information": True})
@pytest.mark.parametrize(
    ("choice", "words"),
    [
        ({"token_ids": [7], "prompt_token_ids": [1], "logprobs": {"content": ENTRIES}}, "1 token ids and 2 log-prob"),
        ({"logprobs": {"content": [{**ENTRIES[0], "token": "four"}]}}, "'four'"),
    ],
)
def test_tokens_that_do_not_agree_fail_the_call(endpoint, url, choice, words):
    endpoint.answer = lambda _path, _body: chat({"content": "a"}, choice=choice)
    reply = ask(url)
    assert (reply.status, words in reply.json()) == (500, True)


@with_options({"return_token_id_information": True})
def test_log_probabilities_stay_for_the_client_that_asked_for_them(endpoint, url):
    endpoint.answer = lambda _path, _body: chat({"content": "a", **TOKENS}, choice={"logprobs": {"content": ENTRIES}})
    with_them = complete(url, USER, logprobs=True).json()["choices"][0]
    without = complete(url, USER).json()["choices"][0]
    assert (len(with_them["logprobs"]["content"]), "logprobs" in without) == (2, False)


def test_template_arguments_that_are_dropped_are_warned_of_once(endpoint, url, caplog):
    for _ in range(2):
        complete(url, USER, chat_template_kwargs={"a": 1})
    assert "chat_template_kwargs" not in endpoint.last
    assert [record.levelname for record in caplog.records if "chat_template_kwargs" in record.message] == ["WARNING"]


@with_options({"return_token_id_information": True})
def test_several_answers_with_tokens_are_refused(url):
    reply = complete(url, USER, n=2)
    assert (reply.status, "set it to 1" in reply.json()) == (500, True)


@with_options({"sequential_reasoning_allowed": False})
def test_an_empty_last_assistant_turn_is_answered_here(endpoint, url):
    reply = complete(url, USER, {"role": "assistant", "content": ""}).json()
    assert (reply["choices"][0]["finish_reason"], endpoint.seen) == ("content_filter", [])


@with_options({"continue_final_assistant_message": True})
def test_a_last_assistant_message_is_continued(endpoint, url):
    endpoint.answer = lambda _path, _body: chat({"content": " b", "reasoning": "more"})
    reply = complete(url, USER, {"role": "assistant", "content": "a"}).json()
    assert (endpoint.last["continue_final_message"], endpoint.last["add_generation_prompt"]) == (True, False)
    assert reply["choices"][0]["message"]["content"] == "more b"


@with_options({"use_completions_api": True})
def test_an_endpoint_that_only_completes_text_is_asked_in_text(endpoint, url):
    reply = ask(url, [{"role": "system", "content": "s"}, USER], max_output_tokens=5).json()
    assert endpoint.seen[0][0] == "/v1/completions"
    assert (endpoint.last["prompt"], endpoint.last["max_tokens"]) == ("s\nhi", 5)
    assert reply["output"][0]["content"][0]["text"] == "completed s\nhi"
    assert ask(url, tools=[TOOL]).status == 500


@with_options({"use_completions_api": True, "return_token_id_information": True})
def test_text_completions_carry_tokens_too(endpoint, url):
    logprobs = {"tokens": ["token_id:7", "token_id:8"], "token_logprobs": [-0.5, -0.25]}
    choice = {"index": 0, "text": "a", "finish_reason": "stop", "logprobs": logprobs}
    reply = {"id": "cmpl", "created": 1, "model": "m", "choices": [choice]}
    endpoint.answer = lambda path, _body: {"tokens": [1, 2, 3]} if path == "/tokenize" else reply
    (item,) = ask(url).json()["output"]
    assert {key: item[key] for key in TOKENS} == TOKENS
    assert endpoint.last == {"model": "configured", "prompt": "hi"}


@with_options({"is_responses_native": True, "sampling_overrides": {"temperature": 0.1}, "extra_body": {"seed": 3}})
def test_a_native_endpoint_gets_the_responses_request_as_it_is(endpoint, url):
    body = {"temperature": 0.9, "metadata": {"extra_body": '{"top_k": 4}', "kept": "x"}, "model": "asked"}
    assert ask(url, **body).json()["output"][0]["content"][0]["text"] == "you said hi"
    assert endpoint.seen[0][0] == "/v1/responses"
    shaped = {"model": "configured", "temperature": 0.1, "seed": 3, "top_k": 4, "metadata": {"kept": "x"}}
    assert endpoint.last == {**shaped, "input": "hi"}


@with_options({"forward_session_id_as_conversation_id": True})
def test_a_session_is_named_to_the_endpoint_and_stays_the_same(endpoint, url):
    first = ask(url)
    cookie = first.headers["set-cookie"].split(";")[0]
    post(f"{url}/v1/responses", {"input": "again"}, headers={"cookie": cookie})
    sessions = [body["conversation_params"]["conversation_id"] for _, body, _ in endpoint.seen]
    assert sessions[0] == sessions[1]


def test_a_busy_endpoint_is_asked_again(endpoint, url):
    endpoint.script += [JSONResponse({"error": "busy"}, 503), error(429, headers={"Retry-After": "0"})]
    assert ask(url).status == 200
    assert len(endpoint.seen) == 3


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"base_url": ""}, "endpoint_file"),
        ({"supply_prefix_token_ids": True}, "token capture"),
        ({"render_chat_template": True}, "tokenizer library"),
        ({"reasoning_field": "thoughts"}, "reasoning_content"),
    ],
)
def test_a_configuration_that_cannot_work_is_refused(endpoint, options, words):
    with pytest.raises(ValidationError, match=words):
        settings(endpoint, **options)


@pytest.mark.parametrize("missing", ["return_token_id_information", "uses_reasoning_parser"])
def test_what_has_no_default_must_be_given(endpoint, missing):
    given = json.loads(settings(endpoint).model_dump_json(exclude_unset=True))
    del given[missing]
    with pytest.raises(ValidationError, match=missing):
        VLLMModelConfig.model_validate(given)


def test_the_environment_names_the_reasoning_field(endpoint, monkeypatch):
    monkeypatch.setenv("NEMO_GYM_REASONING_FIELD", "reasoning")
    assert settings(endpoint).reasoning_field == "reasoning"
