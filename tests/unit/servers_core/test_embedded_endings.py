"""However a handler's task ends, its caller is answered and nothing is left of the call."""

import asyncio
import contextvars
import logging

import pytest

from rollbook.servers.http.embedded_call import EmbeddedRequest
from rollbook.servers.http.embedded_registry import EmbeddedServer

LIMIT = 60.0


def server_of(app):
    return EmbeddedServer("127.0.0.1", 9, app, "it", "port")


def called(server):
    return asyncio.create_task(server.call(EmbeddedRequest("POST", server.base_url, "/")))


async def begun(server):
    """Return a call whose handler's task is made, and that task, which has not taken its first step."""
    call = called(server)
    await asyncio.sleep(0)
    (handler,) = server.running
    return call, handler


async def status_of(call):
    async with asyncio.timeout(LIMIT):
        return (await call).status


async def answering(scope, receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"x"})


@pytest.mark.parametrize("times", [1, 2])
async def test_a_handler_cancelled_before_its_first_step_is_a_500(times):
    server = server_of(answering)
    call, handler = await begun(server)
    for _ in range(times):
        handler.cancel()
    assert await status_of(call) == 500
    assert not server.running


async def test_a_caller_cancelled_together_with_a_handler_that_has_not_begun_is_cancelled():
    server = server_of(answering)
    call, handler = await begun(server)
    handler.cancel()
    call.cancel()
    await asyncio.wait({call, handler}, timeout=LIMIT)
    assert call.cancelled()
    assert handler.cancelled()
    assert not server.running


@pytest.mark.parametrize("error", [GeneratorExit, asyncio.CancelledError, StopIteration, ValueError, BaseException])
async def test_whatever_a_handler_raises_in_its_first_step_is_a_500(error, caplog):
    caplog.set_level(logging.CRITICAL)

    def app(scope, receive, send):
        raise error

    server = server_of(app)
    assert await status_of(called(server)) == 500
    assert not server.running


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_what_ends_the_program_leaves_the_loop_and_answers_the_caller(error):
    async def app(scope, receive, send):
        raise error

    loop = asyncio.new_event_loop()
    loop.set_exception_handler(lambda *_: None)
    try:

        async def made():
            server = server_of(app)
            return server, called(server)

        server, call = loop.run_until_complete(made())
        with pytest.raises(error):
            loop.run_until_complete(call)
        assert loop.run_until_complete(call).status == 500
        assert not server.running
    finally:
        loop.close()


def test_a_handler_that_is_thrown_away_with_its_loop_says_nothing_to_it():
    async def waiting(scope, receive, send):
        await asyncio.get_running_loop().create_future()

    async def made():
        server = server_of(waiting)
        call, handler = await begun(server)
        await asyncio.sleep(0)
        return server, call, handler

    loop = asyncio.new_event_loop()
    loop.set_exception_handler(lambda *_: None)
    server, call, handler = loop.run_until_complete(made())
    loop.close()
    handler.get_coro().close()
    call.get_coro().close()
    assert server.running == {handler}


async def test_what_a_handler_puts_into_its_context_stays_there():
    name = contextvars.ContextVar("name", default="nobody")
    seen = []

    async def app(scope, receive, send):
        seen.append(name.get())
        name.set("handler")
        await answering(scope, receive, send)

    server = server_of(app)
    name.set("caller")
    for _ in range(2):
        assert (await server.call(EmbeddedRequest("POST", server.base_url, "/"))).status == 200
    assert (seen, name.get()) == (["nobody", "nobody"], "caller")


async def test_handlers_that_begin_in_the_grace_of_others_or_as_they_are_cancelled_are_cancelled_too():
    ended, calls = [], []

    async def app(scope, receive, send):
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(scope["path"])
            if scope["path"] == "/first":
                call("/third")

    def call(path):
        calls.append(asyncio.create_task(server.call(EmbeddedRequest("POST", server.base_url, path))))

    server = server_of(app)
    call("/first")
    await asyncio.sleep(0)
    closing = asyncio.create_task(server.close())
    await asyncio.sleep(0)
    call("/second")
    async with asyncio.timeout(LIMIT):
        await closing
    assert [await status_of(one) for one in calls] == [500, 500, 500]
    assert ({*ended} >= {"/first", "/second"}, server.running) == (True, set())


async def test_a_handler_is_cancelled_once_and_ends_in_its_own_time():
    ending = []

    async def app(scope, receive, send):
        try:
            await asyncio.Event().wait()
        finally:
            for _ in range(100):
                await asyncio.sleep(0)
            ending.append("whole")

    server = server_of(app)
    calls = [called(server) for _ in range(2)]
    await asyncio.sleep(0)
    async with asyncio.timeout(LIMIT):
        await server.close()
        await asyncio.wait(calls)
    assert ending == ["whole"] * 2
