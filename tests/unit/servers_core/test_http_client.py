import asyncio
import gc
import socket
from contextlib import asynccontextmanager

import pytest
import uvicorn
from aiohttp import ClientConnectorError, ServerDisconnectedError

from ports import free_ports
from rollbook.errors import ConfigError
from rollbook.records.exchange import SendFailed
from rollbook.records.failure_kinds import Delivery
from rollbook.servers.http import http_client
from rollbook.servers.http.client_config import GlobalAIOHTTPAsyncClientConfig
from rollbook.servers.http.client_pool import (
    choose_client_settings,
    current_client_settings,
    get_global_aiohttp_client,
    global_aiohttp_client_exit,
    set_global_aiohttp_client,
)
from rollbook.servers.http.client_settings import ClientSettings, read_client_settings
from rollbook.servers.http.http_client import request
from rollbook.servers.http.listening import KEEP_ALIVE_SECONDS
from rollbook.servers.http.time_limits import default_timeout, model_call_timeout
from unit.servers_core.stand_ins import posted

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"


class Raw:
    """A server that counts whole requests, and answers each connection with a script of replies."""

    def __init__(self, *replies: bytes | None) -> None:
        self.replies = list(replies)
        self.requests: list[bytes] = []
        self.connections = 0

    async def serve(self, reader, writer):
        self.connections += 1
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0] or 0)
                self.requests.append(head + await reader.readexactly(length))
                reply = self.replies.pop(0) if self.replies else OK
                if reply is None:
                    return
                writer.write(reply)
                if reply is not OK:
                    return
        except asyncio.IncompleteReadError:
            return
        finally:
            writer.close()

    @asynccontextmanager
    async def running(self, port=0):
        server = await asyncio.start_server(self.serve, "127.0.0.1", port)
        async with server:
            yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


@pytest.fixture
def hasty(monkeypatch):
    monkeypatch.setattr(http_client, "RETRY_SECONDS", 0.01)


@pytest.mark.parametrize("method", ["POST", "PATCH"])
async def test_a_request_that_was_read_is_not_sent_again(method, hasty):
    raw = Raw(None, OK)
    async with raw.running() as url:
        with pytest.raises(ServerDisconnectedError):
            await request(method, url, json={"x": 1}, _internal=True)
    assert len(raw.requests) == 1


async def test_a_request_that_was_read_on_a_reused_connection_is_not_sent_again(hasty):
    raw = Raw(OK, None, OK)
    async with raw.running() as url:
        await (await request("POST", url, json={"x": 1})).read()
        with pytest.raises(ServerDisconnectedError):
            await request("POST", url, json={"x": 2})
    assert (raw.connections, len(raw.requests)) == (1, 2)


async def test_a_request_that_was_read_is_sent_again_where_the_caller_allows_it(hasty):
    raw = Raw(None, None, OK)
    async with raw.running() as url:
        assert (await request("POST", url, json={"x": 1}, _replay=True)).status == 200
    assert len(raw.requests) == 3


async def test_a_replay_ends_after_three_tries_or_at_the_ordinal_given(hasty):
    raw = Raw(*[None] * 9)
    async with raw.running() as url:
        with pytest.raises(ServerDisconnectedError):
            await request("POST", url, json={}, _replay=True)
        assert len(raw.requests) == 3
        with pytest.raises(ServerDisconnectedError):
            await request("POST", url, json={}, _replay=True, _max_connection_retries=5)
    assert len(raw.requests) == 8


async def test_a_status_is_returned_whatever_it_is(hasty):
    raw = Raw(b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n")
    async with raw.running() as url:
        assert (await request("POST", url, json={})).status == 503
    assert len(raw.requests) == 1


async def test_a_refused_connection_is_tried_until_the_grace_is_over_and_said_at_once(hasty, caplog):
    (port,) = free_ports(1)
    with pytest.raises(ClientConnectorError):
        await request(
            "POST", f"http://u:secret@127.0.0.1:{port}/run?key=x", _connect_grace=0.05, _server_name="colours"
        )
    first = caplog.records[0].getMessage()
    assert first.startswith(f"colours at http://127.0.0.1:{port}/run failed: ClientConnectorError")
    assert "secret" not in first


async def test_the_attempt_with_the_given_ordinal_raises(hasty, caplog):
    (port,) = free_ports(1)
    with pytest.raises(ClientConnectorError):
        await request("POST", f"http://127.0.0.1:{port}", _max_connection_retries=1)
    assert not caplog.records


async def test_a_server_that_comes_up_within_the_grace_is_used(hasty):
    (port,) = free_ports(1)
    raw = Raw()
    call = asyncio.create_task(request("POST", f"http://127.0.0.1:{port}", json={}, _connect_grace=30.0))
    await asyncio.sleep(0)
    async with raw.running(port):
        assert (await call).status == 200
    assert len(raw.requests) == 1


FAILURES = [
    (None, Delivery.POSSIBLY_DELIVERED, "ServerDisconnectedError", None),
    (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{", Delivery.DELIVERED, "ClientPayloadError", 200),
    (b"HTTP/1.1 502 Bad\r\nContent-Length: 9\r\n\r\n{", Delivery.POSSIBLY_DELIVERED, "ClientPayloadError", 502),
    (b"no HTTP at all\r\n\r\n", Delivery.POSSIBLY_DELIVERED, "ClientResponseError", None),
]


@pytest.mark.parametrize(("reply", "delivery", "kind", "status"), FAILURES)
async def test_a_broken_exchange_says_what_is_known_of_its_delivery(reply, delivery, kind, status):
    raw = Raw(reply)
    async with raw.running() as url:
        with pytest.raises(SendFailed, match=url) as caught:
            await posted(url)
    assert (caught.value.delivery, caught.value.exception_type, caught.value.status) == (delivery, kind, status)
    assert len(raw.requests) == 1


async def test_a_refused_connection_is_known_not_to_be_sent():
    (port,) = free_ports(1)
    with pytest.raises(SendFailed, match=f"colours at http://127.0.0.1:{port}/run") as caught:
        await posted(f"http://127.0.0.1:{port}")
    assert caught.value.delivery is Delivery.NOT_SENT


async def test_a_server_that_is_gone_is_not_waited_for():
    (port,) = free_ports(1)
    async with asyncio.timeout(60):
        with pytest.raises(SendFailed):
            await posted(f"http://127.0.0.1:{port}", grace_seconds=600, gone=lambda: True)


async def test_an_unknown_server_is_known_not_to_be_sent_and_close_names_are_given():
    with pytest.raises(SendFailed, match=r"'colour'.*colours") as caught:
        await posted("http://127.0.0.1:1", server="colour")
    assert caught.value.delivery is Delivery.NOT_SENT


async def test_a_server_that_closes_every_connection_unannounced_loses_no_post_and_sees_none_twice():
    raw = Raw(*[bytes(bytearray(OK)) for _ in range(100)])
    async with raw.running() as url:
        replies = [await posted(url) for _ in range(100)]
    assert [reply.status for reply in replies] == [200] * 100
    assert len(raw.requests) == 100


def test_an_idle_connection_is_dropped_before_our_servers_or_uvicorns_default_drop_it():
    assert ClientSettings().pool_keepalive_seconds < min(KEEP_ALIVE_SECONDS, uvicorn.Config(app="").timeout_keep_alive)


async def test_waiting_for_a_connection_of_the_pool_is_no_part_of_a_requests_time():
    set_global_aiohttp_client({"global_aiohttp_connector_limit": 1, "global_aiohttp_connect_timeout_seconds": 1})
    release = asyncio.Event()

    async def slow(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        await release.wait()
        writer.write(OK)
        writer.close()

    server = await asyncio.start_server(slow, "127.0.0.1", 0)
    async with server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        calls = [asyncio.create_task(request("GET", url, _connect_grace=0)) for _ in range(3)]
        done, _ = await asyncio.wait(calls, timeout=1.3)
        assert not done
        release.set()
        assert [(await call).status for call in calls] == [200] * 3
    set_global_aiohttp_client({})


async def test_proxy_variables_of_the_environment_are_ignored(monkeypatch):
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    raw = Raw()
    async with raw.running() as url:
        assert (await posted(url)).status == 200
    assert len(raw.requests) == 1


async def test_no_cookie_of_one_reply_goes_out_with_the_next_request(hasty):
    raw = Raw(b"HTTP/1.1 200 OK\r\nSet-Cookie: a=1\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
    async with raw.running() as url:
        await request("POST", url, json={})
        await request("POST", url, json={})
    assert b"cookie" not in raw.requests[1].lower()


def test_settings_come_from_the_top_level_and_are_divided_among_workers():
    given = {"global_aiohttp_connector_limit": 100, "global_aiohttp_read_timeout_seconds": 7, "other": {}}
    settings = read_client_settings(given, {"NEMO_GYM_FASTAPI_NUM_WORKERS": "4"})
    assert settings == ClientSettings(connector_limit=25, connector_limit_per_host=256, read_seconds=7)
    assert read_client_settings({}, {}) == ClientSettings()


def test_a_setting_that_is_no_number_names_its_key():
    with pytest.raises(ConfigError, match="global_aiohttp_connector_limit is 'many'"):
        read_client_settings({"global_aiohttp_connector_limit": "many"}, {})


@pytest.mark.parametrize("nought", [0, 0.0, -1])
def test_a_time_limit_of_nought_is_no_limit(nought):
    keys = {"read_seconds": "read", "total_seconds": "total", "model_call_seconds": "model_call"}
    settings = read_client_settings({f"global_aiohttp_{key}_timeout_seconds": nought for key in keys.values()}, {})
    assert [getattr(settings, name) for name in keys] == [None] * 3


@pytest.mark.parametrize(
    ("settings", "total"),
    [
        (ClientSettings(), 3600.0),
        (ClientSettings(total_seconds=5.0), 5.0),
        (ClientSettings(total_seconds=7200.0), 3600.0),
        (ClientSettings(model_call_seconds=None), None),
        (ClientSettings(model_call_seconds=None, total_seconds=5.0), 5.0),
    ],
)
def test_a_model_call_has_an_hour_unless_told_otherwise(settings, total):
    assert model_call_timeout(settings).total == total
    assert default_timeout(settings).total == settings.total_seconds


@asynccontextmanager
async def silent():
    """Accept, read, and say nothing."""
    requests = []

    async def serve(reader, writer):
        requests.append(await reader.readuntil(b"\r\n\r\n"))
        await reader.read()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", requests


async def test_a_model_call_of_an_endpoint_that_stays_silent_ends_and_says_what_to_type():
    set_global_aiohttp_client({"global_aiohttp_model_call_timeout_seconds": 0.5})
    hint = r"/v1/x gave no reply within 0\.5 s.*\+\+global_aiohttp_model_call_timeout_seconds=<seconds>"
    async with silent() as (url, requests), asyncio.timeout(60):
        with pytest.raises(TimeoutError, match=hint):
            await request("POST", url + "/v1/x?key=secret", data=b"", _model_call=True, _replay=True)
    assert len(requests) == 1
    set_global_aiohttp_client({})


async def test_a_rollout_is_not_cut_by_the_limit_of_model_calls():
    set_global_aiohttp_client({"global_aiohttp_model_call_timeout_seconds": 0.05})
    async with silent() as (url, requests):
        call = asyncio.create_task(posted(url))
        async with asyncio.timeout(60):
            while not requests:  # noqa: ASYNC110  what is waited for is another's state
                await asyncio.sleep(0)
        done, _ = await asyncio.wait({call}, timeout=0.3)
        assert not done
        assert len(requests) == 1
        call.cancel()
        await asyncio.wait({call})
    set_global_aiohttp_client({})


async def test_settings_given_while_a_client_is_open_replace_it():
    before = current_client_settings()
    set_global_aiohttp_client({"global_aiohttp_connect_grace_seconds": 3})
    assert before.connect_grace_seconds == 60
    assert current_client_settings().connect_grace_seconds == 3
    set_global_aiohttp_client({})


def test_a_loop_that_ends_closes_the_sessions_that_were_opened_in_it():
    async def opened():
        first = get_global_aiohttp_client()
        second = set_global_aiohttp_client({"global_aiohttp_connect_grace_seconds": 3})
        assert not first.closed
        return first, second

    assert [session.closed for session in asyncio.run(opened())] == [True] * 2
    choose_client_settings({})


async def test_a_client_that_was_closed_is_opened_anew():
    first = get_global_aiohttp_client()
    await global_aiohttp_client_exit()
    assert first.closed
    assert not get_global_aiohttp_client().closed


async def test_new_settings_leave_a_call_that_is_under_way_alone():
    release = asyncio.Event()

    async def slow(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        await release.wait()
        writer.write(OK)
        writer.close()

    server = await asyncio.start_server(slow, "127.0.0.1", 0)
    async with server:
        call = asyncio.create_task(request("GET", f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"))
        await asyncio.sleep(0)
        set_global_aiohttp_client({"global_aiohttp_connect_grace_seconds": 3})
        gc.collect()
        release.set()
        assert await (await call).read() == b"{}"
    set_global_aiohttp_client({})


async def test_an_unknown_host_is_known_not_to_be_sent():
    with pytest.raises(SendFailed) as caught:
        await posted("http://nowhere.invalid:80")
    assert caught.value.delivery is Delivery.NOT_SENT
    assert isinstance(caught.value.__cause__, socket.gaierror)


async def test_settings_given_as_an_object_are_those_of_its_fields():
    asked = GlobalAIOHTTPAsyncClientConfig(global_aiohttp_connector_limit=3, global_aiohttp_tcp_keepalive_probes=1)
    session = set_global_aiohttp_client(asked)
    assert (session.connector.limit, current_client_settings().keepalive_probes) == (3, 1)
    assert set_global_aiohttp_client(GlobalAIOHTTPAsyncClientConfig()) is not session
    assert current_client_settings() == ClientSettings()
    await global_aiohttp_client_exit()
