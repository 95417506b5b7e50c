import asyncio
import logging
import re
from contextlib import asynccontextmanager, nullcontext
from datetime import UTC, datetime

import pytest
from aiohttp import ClientResponseError, ServerDisconnectedError
from starlette.responses import PlainTextResponse

from rollbook.errors import ServingError
from rollbook.servers.http.http_client import global_aiohttp_client_exit, set_global_aiohttp_client
from rollbook.servers.openai.openai_client import NeMoGymAsyncOpenAI, PermanentEndpointError
from rollbook.servers.openai.openai_retry import (
    Patience,
    Spent,
    is_free,
    next_wait,
    permanent_code,
    retry_after_seconds,
    spread,
)
from unit.servers_models.serving import Endpoint, error, serving

KEY = "sk-not-to-be-shown"
NOW = datetime(2026, 1, 1, tzinfo=UTC).timestamp()


class StandingClock:
    """A clock on which waiting takes no time and is written down."""

    def __init__(self) -> None:
        self.slept = []

    def monotonic(self):
        return sum(self.slept)

    def now(self):
        return NOW + sum(self.slept)

    async def sleep(self, seconds):
        self.slept.append(seconds)


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


@pytest.fixture(autouse=True)
async def closed_pool():
    yield
    await global_aiohttp_client_exit()


def client_of(endpoint, **options):
    client = NeMoGymAsyncOpenAI(base_url=endpoint.base_url, api_key=KEY, **options)
    client._clock = StandingClock()
    client._chance = lambda: 0.5
    return client


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        (None, None),
        ("2", 2.0),
        (" 1.5 ", 1.5),
        ("0", 0.0),
        ("Thu, 01 Jan 2026 00:00:10 GMT", 10.0),
        ("Wed, 31 Dec 2025 00:00:00 GMT", 0.0),
        ("soon", None),
        ("Mon, 01 Jan 99999999999 00:00:00 GMT", None),
        ("Mon, 01 Jan 2020 00:00:00 +999999999999", None),
        ("-3", None),
        ("", None),
    ],
)
def test_a_retry_after_is_read_as_seconds_or_date_and_garbage_is_absent(header, seconds):
    assert retry_after_seconds(header, NOW) == seconds


@pytest.mark.parametrize("chance", [0.0, 0.3, 0.999])
@pytest.mark.parametrize("hint", [0.0, 2.0, 60.0])
def test_a_hint_is_never_undercut_and_is_spread(hint, chance):
    assert hint <= spread(hint, chance)
    assert spread(hint, 0.999) - spread(hint, 0.0) > 0.5


@pytest.mark.parametrize(
    ("status", "hint", "spent", "wait"),
    [
        (500, None, Spent(1), 0.5),
        (404, None, Spent(2), 0.5),
        (500, None, Spent(3), None),
        (400, None, Spent(1), None),
        (401, None, Spent(1), None),
        (429, 4.0, Spent(0), 4.5),
        (429, 4.0, Spent(0, 96.0), None),
        (429, 1000.0, Spent(0), None),
    ],
)
def test_the_next_try_comes_after_its_wait_or_not_at_all(status, hint, spent, wait):
    assert next_wait(status, hint, 0.5, Patience(3, 100.0), spent) == wait


@pytest.mark.parametrize(
    ("status", "hint", "internal", "free"),
    [(429, None, False, False), (429, 2.0, False, True), (429, None, True, True), (500, 2.0, True, False)],
)
def test_a_try_is_free_when_the_endpoint_said_when_to_come_back(status, hint, internal, free):
    assert is_free(status, hint, Patience(3, rate_limits_are_free=internal)) is free


@pytest.mark.parametrize(
    ("status", "body", "code"),
    [
        (401, b'{"error": {"code": "invalid_api_key"}}', "invalid_api_key"),
        (403, b'{"error": {"type": "authentication_error", "code": null}}', "authentication_error"),
        (401, b'{"code": "invalid_api_token"}', "invalid_api_token"),
        (429, b'{"error": {"code": "insufficient_quota"}}', "insufficient_quota"),
        (429, b'{"error": {"type": "budget_exceeded"}}', "budget_exceeded"),
        (429, b'{"error": {"code": "rate_limit_exceeded"}}', None),
        (500, b'{"error": {"code": "invalid_api_key"}}', None),
        (401, b'{"error": "bad key"}', None),
        (401, b"[1]", None),
        (401, b"<html>", None),
    ],
)
def test_only_a_refused_key_or_a_spent_budget_is_for_good(status, body, code):
    assert permanent_code(status, body) == code


async def test_every_method_posts_to_its_own_path_with_key_and_headers(endpoint):
    client = client_of(endpoint, default_headers={"x-team": "t"})
    assert (await client.create_models())["data"]
    assert (await client.create_chat_completion(model="m", messages=[{"role": "user", "content": "q"}]))["choices"]
    assert (await client.create_completion(model="m", prompt="p"))["choices"]
    assert (await client.create_response(model="m", input="q"))["output"]
    assert await client.create_tokenize(model="m", prompt="p") == {"tokens": [1, 2, 3]}
    paths = [path for path, _, _ in endpoint.seen]
    assert paths == ["/v1/models", "/v1/chat/completions", "/v1/completions", "/v1/responses", "/tokenize"]
    headers = endpoint.seen[-1][2]
    assert (headers["authorization"], headers["x-team"]) == (f"Bearer {KEY}", "t")


async def test_a_server_error_is_tried_again_until_the_attempts_are_used_up(endpoint):
    client = client_of(endpoint)
    endpoint.script += [error(500), error(503)]
    assert (await client.create_response(model="m", input="q"))["id"] == "resp_1"
    assert client._clock.slept == [0.5, 0.5]
    endpoint.script += [error(500, message="first"), error(502), error(500, message="third")]
    with pytest.raises(ClientResponseError) as raised:
        await client.create_response(model="m", input="q")
    assert (raised.value.status, b"third" in raised.value.response_content) == (500, True)


async def test_a_bad_request_is_not_tried_again(endpoint):
    endpoint.script += [error(400, message="wrong shape")]
    with pytest.raises(ClientResponseError) as raised:
        await client_of(endpoint).create_response(model="m", input="q")
    assert raised.value.response_content.startswith(b"HTTP 400 from http://127.0.0.1:")
    assert b"wrong shape" in raised.value.response_content
    assert len(endpoint.seen) == 1


async def test_a_retry_after_costs_time_and_no_attempt(endpoint):
    client = client_of(endpoint, max_http_attempts=1)
    endpoint.script += [error(429, headers={"Retry-After": "2"}) for _ in range(5)]
    assert (await client.create_response(model="m", input="q"))["id"] == "resp_1"
    assert client._clock.slept == [2.5] * 5


async def test_waiting_has_an_end(endpoint):
    client = client_of(endpoint, max_wait_seconds=5.0)
    endpoint.script += [error(429, headers={"Retry-After": "2"}) for _ in range(5)]
    with pytest.raises(ClientResponseError):
        await client.create_response(model="m", input="q")
    assert client._clock.slept == [2.5, 2.5]


async def test_rate_limits_of_an_endpoint_of_ours_cost_no_attempt(endpoint):
    client = client_of(endpoint, internal=True)
    endpoint.script += [error(429) for _ in range(8)]
    assert (await client.create_response(model="m", input="q"))["id"] == "resp_1"
    assert client._clock.slept == [0.5] * 8


async def test_a_refused_key_ends_this_call_and_every_later_one(endpoint):
    client = client_of(endpoint)
    endpoint.script += [error(401, "invalid_api_key", "bad key")]
    with pytest.raises(PermanentEndpointError, match=r"401 invalid_api_key.*bad key"):
        await client.create_response(model="m", input="q")
    with pytest.raises(PermanentEndpointError, match="bad key"):
        await client.create_chat_completion(model="m", messages=[])
    assert len(endpoint.seen) == 1


async def test_the_key_is_in_no_message_no_log_line_and_no_repr(endpoint, caplog):
    caplog.set_level(logging.DEBUG)
    client = client_of(endpoint, default_headers={"authorization": f"Basic {KEY}"})
    endpoint.script += [error(503), error(401, "invalid_api_key")]
    with pytest.raises(PermanentEndpointError) as raised:
        await client.create_response(model="m", input="q")
    assert KEY not in caplog.text + str(raised.value) + repr(client)


@asynccontextmanager
async def mute(answers_after, **options):
    """Serve connections that are closed after their request, or held without an answer when `answers_after` is None."""
    taken, held = [], []

    async def serve(reader, writer):
        held.append(writer)
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(re.search(rb"content-length: (\d+)", head, re.IGNORECASE)[1])
        taken.append(await reader.readexactly(length))
        if answers_after is not None:
            if len(taken) > answers_after:
                writer.write(b'HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\n{"id": "ok"}')
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        port = server.sockets[0].getsockname()[1]
        yield NeMoGymAsyncOpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key=KEY, **options), taken
    finally:
        server.close()
        for writer in held:
            writer.close()


@pytest.fixture(params=["read", "total", "model_call"])
async def short_of_time(request):
    set_global_aiohttp_client({f"global_aiohttp_{request.param}_timeout_seconds": 0.5})
    yield
    set_global_aiohttp_client({})


async def test_a_call_that_ran_out_of_time_is_not_sent_again(short_of_time):
    async with mute(None) as (client, taken):
        client._clock = StandingClock()
        with pytest.raises(TimeoutError):
            await client.create_response(model="m", input="q")
    assert (len(taken), client._clock.slept) == (1, [])


@pytest.mark.parametrize(("broken", "sent", "comes"), [(1, 2, True), (2, 3, True), (3, 3, False)])
async def test_a_call_whose_connection_broke_is_sent_three_times_at_most(broken, sent, comes):
    async with mute(broken) as (client, taken):
        client._clock = StandingClock()
        with nullcontext() if comes else pytest.raises(ServerDisconnectedError):
            assert await client.create_response(model="m", input="q") == {"id": "ok"}
    assert (len(taken), set(taken), client._clock.slept) == (sent, {taken[0]}, [0.5] * (sent - 1))


async def test_a_configured_number_of_connection_tries_is_kept():
    async with mute(9, max_connection_retries=5) as (client, taken):
        client._clock = StandingClock()
        with pytest.raises(ServerDisconnectedError):
            await client.create_response(model="m", input="q")
    assert len(taken) == 5


async def test_an_address_is_shown_without_its_query(endpoint, caplog):
    caplog.set_level(logging.DEBUG)
    client = NeMoGymAsyncOpenAI(base_url=f"{endpoint.base_url}?token={KEY}&x=", api_key=KEY)
    client._clock = StandingClock()
    endpoint.script += [error(503), PlainTextResponse("<html>"), error(401, "invalid_api_key")]
    with pytest.raises(ServingError, match="no JSON object") as nonsense:
        await client.create_response(model="m", input="q")
    with pytest.raises(PermanentEndpointError) as refused:
        await client.create_response(model="m", input="q")
    assert "asked again" in caplog.text
    assert KEY not in caplog.text + str(nonsense.value) + str(refused.value)


async def test_half_a_character_in_a_reply_is_a_replacement_character(endpoint):
    text = '{"id": "\\ud83d\\ude00 a\\ud83d", "\\udc00": [1.5, 12345678901234567890123, null, true]}'
    endpoint.script += [PlainTextResponse(text)]
    reply = await client_of(endpoint).create_response(model="m", input="q")
    assert reply == {"id": "\U0001f600 a\ufffd", "\ufffd": [1.5, 12345678901234567890123, None, True]}


@pytest.mark.parametrize(
    "text",
    ['{"a": NaN}', '{"a": "\\ud800", "b": -Infinity}', '{"a": ' + "[" * 5000, "<html>busy</html>", "", "[]", '{"cut'],
)
async def test_a_reply_that_is_no_json_object_is_an_error_that_shows_it(endpoint, text):
    endpoint.script += [PlainTextResponse(text)]
    with pytest.raises(ServingError, match="no JSON object"):
        await client_of(endpoint).create_response(model="m", input="q")
