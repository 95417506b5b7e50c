import asyncio

import pytest

from rollbook.servers.http.embedded_registry import register_embedded, unregister_embedded
from rollbook.servers.http.http_client import request
from unit.servers_core.stand_ins import behind_a_socket, probe

LIMIT = 5.0


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
            await request("POST", embedded.base_url + "/wait", timeout=0.01)
        async with asyncio.timeout(LIMIT):
            await server._left.wait()
    finally:
        unregister_embedded(embedded)
