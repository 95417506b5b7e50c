import asyncio

import pytest

from responses_api_models.openai_model.app import OpenAIModel, OpenAIModelConfig
from rollbook import BaseServerConfig, NeMoGymResponseCreateParamsNonStreaming, ServerClient
from unit.servers_models.serving import Endpoint, error, events, post, serving, usual

KEY = "sk-not-to-be-shown"
TOOL = {"type": "function", "name": "get_weather", "parameters": {"type": "object"}, "strict": True}


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


def model(endpoint, **options):
    config = OpenAIModelConfig(
        host="127.0.0.1",
        port=1,
        entrypoint="app.py",
        name="policy_model",
        openai_base_url=endpoint.base_url,
        openai_api_key=KEY,
        openai_model="configured",
        **options,
    )
    return OpenAIModel(config=config, server_client=ServerClient(BaseServerConfig(host="127.0.0.1", port=1), {}))


@pytest.fixture
def url(endpoint, request):
    with serving(model(endpoint, **getattr(request, "param", {})).build_app()) as served:
        yield served


def test_a_tool_call_and_its_result_go_round_in_the_responses_dialect(endpoint, url):
    first = post(f"{url}/v1/responses", {"input": [{"role": "user", "content": "Oslo?"}], "tools": [TOOL]}).json()
    (made,) = first["output"]
    assert (made["type"], made["name"], made["arguments"]) == ("function_call", "get_weather", '{"city": "Oslo"}')
    result = {"type": "function_call_output", "call_id": made["call_id"], "output": "rain"}
    turns = [{"role": "user", "content": "Oslo?"}, made, result]
    second = post(f"{url}/v1/responses", {"input": turns, "tools": first["tools"]}).json()
    assert second["output"][0]["content"][0]["text"] == "you said rain"
    assert (second["usage"]["total_tokens"], second["provider_extra"]) == (5, {"a": 1})
    assert endpoint.last["input"][1] == made


def test_a_tool_call_goes_round_in_the_chat_dialect(endpoint, url):
    tools = [{"type": "function", "function": {"name": "get_weather", "parameters": {}}}]
    body = {"messages": [{"role": "user", "content": "Oslo?"}], "tools": tools}
    message = post(f"{url}/v1/chat/completions", body).json()["choices"][0]["message"]
    assert message["tool_calls"][0]["function"] == {"name": "get_weather", "arguments": '{"city": "Oslo"}'}
    assert endpoint.seen[-1][0] == "/v1/chat/completions"


def test_a_streaming_client_gets_the_replayed_answer(url):
    found = events(post(f"{url}/v1/responses", {"input": "hi", "stream": True}).text)
    assert found[-1][0] == "response.completed"
    assert [data["delta"] for name, data in found if name == "response.output_text.delta"] == ["you said hi"]


@pytest.mark.parametrize(("asked", "model_asked"), [({}, "configured"), ({"model": "named"}, "named")])
def test_the_configured_model_is_asked_when_the_request_names_none(endpoint, url, asked, model_asked):
    post(f"{url}/v1/responses", {"input": "hi", **asked})
    assert endpoint.last["model"] == model_asked


def test_only_what_was_given_goes_out(endpoint, url):
    post(f"{url}/v1/responses", {"input": "hi", "temperature": 0.5, "background": None})
    assert endpoint.last == {"model": "configured", "input": "hi", "temperature": 0.5}
    assert endpoint.seen[-1][2]["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize("url", [{"extra_body": {"seed": 1}, "openai_default_headers": {"x-team": "t"}}], indirect=True)
def test_extra_fields_and_headers_go_with_every_request(endpoint, url):
    post(f"{url}/v1/responses", {"input": "hi"})
    assert (endpoint.last["seed"], endpoint.seen[-1][2]["x-team"]) == (1, "t")


@pytest.mark.parametrize("url", [{"drop_input_reasoning_items": True}], indirect=True)
def test_reasoning_items_stay_here_when_they_are_to_be_dropped(endpoint, url):
    thought = {"type": "reasoning", "id": "rs", "summary": []}
    post(f"{url}/v1/responses", {"input": [{"role": "user", "content": "q"}, thought]})
    assert [item.get("type") for item in endpoint.last["input"]] == [None]


def test_a_rate_limit_with_a_hint_is_waited_out(endpoint, url):
    endpoint.script += [error(429, headers={"Retry-After": "0"}), error(500)]
    assert post(f"{url}/v1/responses", {"input": "hi"}).status == 200
    assert len(endpoint.seen) == 3


@pytest.mark.parametrize("url", [{"max_http_attempts": 1}], indirect=True)
def test_an_error_of_the_endpoint_is_a_500_that_carries_its_words(endpoint, url):
    endpoint.script += [error(500, message="out of memory")]
    reply = post(f"{url}/v1/responses", {"input": "hi"})
    assert reply.status == 500
    assert "HTTP 500 from http://127.0.0.1:" in reply.json()
    assert "out of memory" in reply.json()


def test_a_refused_key_says_so_once_and_the_endpoint_is_left_alone(endpoint, url):
    endpoint.script += [error(401, "invalid_api_key", "bad key")]
    replies = [post(f"{url}/v1/responses", {"input": "hi"}) for _ in range(2)]
    assert len(endpoint.seen) == 1
    for reply in replies:
        assert reply.status == 500
        assert "401" in reply.json()
        assert "bad key" in reply.json()
        assert KEY not in reply.text


async def test_no_more_calls_are_in_flight_than_allowed(endpoint):
    server = model(endpoint, max_concurrent_requests=2)
    in_flight, most, full, release = set(), [], asyncio.Event(), asyncio.Event()

    class CountingClient:
        async def create_response(self, **body):
            in_flight.add(body["input"])
            most.append(len(in_flight))
            if len(in_flight) == 2:
                full.set()
            await release.wait()
            in_flight.discard(body["input"])
            return usual("/responses", body)

    server._client = CountingClient()
    asked = [NeMoGymResponseCreateParamsNonStreaming(input=str(number)) for number in range(6)]
    calls = [asyncio.ensure_future(server.responses(body)) for body in asked]
    await full.wait()
    release.set()
    await asyncio.gather(*calls)
    assert (max(most), len(most)) == (2, 6)


@pytest.mark.parametrize("bad", [{"max_http_attempts": 0}, {"max_concurrent_requests": 0}])
def test_limits_below_one_are_refused(endpoint, bad):
    with pytest.raises(ValueError, match="greater than or equal to 1"):
        model(endpoint, **bad)
