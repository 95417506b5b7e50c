import asyncio

import pytest

from rollbook.servers.http.embedded_registry import register_embedded, unregister_embedded
from rollbook.servers.http.http_client import request
from rollbook.servers.middleware import ClientDisconnectCancellationMiddleware
from unit.servers_core.stand_ins import behind_a_socket, probe

LIMIT = 60.0


async def cancelled_while_waiting(server, url):
    """Cancel a call that the handler is busy with, and return once the handler has left."""
    call = asyncio.create_task(request("POST", url + "/wait"))
    async with asyncio.timeout(LIMIT):
        await server._entered.wait()
        call.cancel()
        await asyncio.wait({call})
        await server._left.wait()
    return call


async def test_a_client_that_goes_away_cancels_the_handler_behind_a_socket(caplog):
    server = probe()
    caplog.set_level("INFO")
    async with behind_a_socket(server.build_app()) as url:
        call = await cancelled_while_waiting(server, url)
    assert call.cancelled()
    assert sum(record.getMessage().startswith("499 ") for record in caplog.records) == 1


async def test_a_cancelled_caller_cancels_the_handler_of_an_embedded_server():
    server = probe()
    embedded = register_embedded("127.0.0.1", 5, server.build_app())
    try:
        call = await cancelled_while_waiting(server, embedded.base_url)
        assert call.cancelled()
        assert not embedded.is_open
        await asyncio.wait(set(embedded.running) or {call})
        assert not embedded.running
    finally:
        unregister_embedded(embedded)


async def test_a_cancelled_caller_waits_for_no_handler():
    release = asyncio.Event()

    async def stubborn(scope, receive, send):
        entered.set()
        try:
            await release.wait()
        except asyncio.CancelledError:
            await release.wait()

    entered = asyncio.Event()
    embedded = register_embedded("127.0.0.1", 5, stubborn)
    try:
        call = asyncio.create_task(request("POST", embedded.base_url))
        await entered.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            async with asyncio.timeout(LIMIT):
                await call
        assert len(embedded.running) == 1
    finally:
        release.set()
        unregister_embedded(embedded)
        await embedded.close()


async def test_a_timeout_of_the_caller_cancels_the_embedded_handler():
    server = probe()
    embedded = register_embedded("127.0.0.1", 5, server.build_app())
    try:
        with pytest.raises(TimeoutError):
            await request("POST", embedded.base_url + "/wait", timeout=0.5)
        async with asyncio.timeout(LIMIT):
            await server._left.wait()
    finally:
        unregister_embedded(embedded)


async def test_a_handler_is_cancelled_by_a_disconnect_that_its_server_tells_by_a_message():
    messages = [{"type": "http.request", "body": b"", "more_body": False}, {"type": "http.disconnect"}]
    entered, left, sent = asyncio.Event(), asyncio.Event(), []

    async def waiting(scope, receive, send):
        assert (await receive())["type"] == "http.request"
        entered.set()
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            left.set()

    async def receive():
        if len(messages) == 1:
            await entered.wait()
        return messages.pop(0)

    async def send(message):
        sent.append(message)

    async with asyncio.timeout(LIMIT):
        scope = {"type": "http", "method": "POST", "path": "/wait"}
        await ClientDisconnectCancellationMiddleware(waiting)(scope, receive, send)
    assert left.is_set()
    assert sent == []


async def test_a_client_that_goes_after_its_reply_cancels_nobody():
    server = probe()
    async with behind_a_socket(server.build_app()) as url, asyncio.timeout(LIMIT):
        reader, writer = await asyncio.open_connection(*url.removeprefix("http://").split(":"))
        for _ in range(2):
            writer.write(b"GET /livez HTTP/1.1\r\nhost: it\r\n\r\n")
            assert await reader.readuntil(b'{"status":"ok"}')
        writer.close()
        await writer.wait_closed()
        call = await cancelled_while_waiting(server, url)
        assert call.cancelled()
