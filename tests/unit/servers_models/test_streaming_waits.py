import asyncio

import pytest
from fastapi import HTTPException
from starlette.requests import ClientDisconnect

from rollbook.servers.kinds import streaming_chat, streaming_messages, streaming_sse
from rollbook.servers.kinds.streaming_sse import fails_early, failure_json, streamed


@pytest.fixture
def no_wait(monkeypatch):
    monkeypatch.setattr(streaming_sse, "KEEPALIVE_SECONDS", 0.001)


def as_events(result):
    return [f"data: {result}\n\n".encode()]


async def test_a_comment_keeps_the_connection_while_the_model_works(no_wait):
    release = asyncio.Event()

    async def work():
        await release.wait()
        return "done"

    body = streamed(asyncio.ensure_future(work()), as_events, streaming_chat.failed_events).body_iterator
    assert await anext(body) == b": keepalive\n\n"
    release.set()
    rest = [chunk async for chunk in body]
    assert rest[-1] == b"data: done\n\n"


async def test_a_late_failure_is_an_error_event(no_wait):
    async def work():
        raise RuntimeError("inner address")

    body = streamed(asyncio.ensure_future(work()), as_events, streaming_chat.failed_events).body_iterator
    *_, last = [chunk async for chunk in body]
    error = b'{"message":"HTTP 500: Model request failed","type":"server_error","code":500}'
    assert last == b'event: error\ndata: {"error":' + error + b"}\n\n"


@pytest.mark.parametrize("gone_at", ["http.response.start", "http.response.body"])
async def test_a_client_that_goes_away_cancels_the_call(no_wait, gone_at):
    call = asyncio.ensure_future(asyncio.Event().wait())

    async def send(message):
        if message["type"] == gone_at:
            raise OSError("gone")

    scope = {"type": "http", "asgi": {"spec_version": "2.4"}}
    with pytest.raises(ClientDisconnect):
        await streamed(call, as_events, streaming_chat.failed_events)(scope, asyncio.Event().wait, send)
    with pytest.raises(asyncio.CancelledError):
        await call


async def test_a_cancelled_call_is_a_failure_event(no_wait):
    call = asyncio.ensure_future(asyncio.Event().wait())
    call.cancel()
    chunks = [chunk async for chunk in streamed(call, as_events, streaming_chat.failed_events).body_iterator]
    assert b"server_error" in chunks[-1]


async def test_headers_wait_for_a_failure_but_not_for_ever(no_wait):
    async def fail():
        raise HTTPException(400, "no")

    failing = asyncio.ensure_future(fail())
    assert await fails_early(failing)
    slow = asyncio.ensure_future(asyncio.Event().wait())
    assert not await fails_early(slow)
    slow.cancel()
    assert failing.exception() is not None


async def test_a_cancelled_wait_cancels_the_call():
    call = asyncio.ensure_future(asyncio.Event().wait())
    waiting = asyncio.ensure_future(fails_early(call))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    with pytest.raises(asyncio.CancelledError):
        await call


def test_a_failure_of_the_messages_dialect_has_its_own_shape():
    (event,) = streaming_messages.failed_events(failure_json(RuntimeError("x")))
    assert event.startswith(b'event: error\ndata: {"type":"error","error":{"type":"api_error"')
