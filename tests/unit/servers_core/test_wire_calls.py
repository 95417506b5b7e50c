import asyncio
import gzip
from contextlib import asynccontextmanager

import pytest
from aiohttp import (
    ClientConnectorDNSError,
    ClientConnectorError,
    ClientOSError,
    ClientPayloadError,
    ClientResponseError,
    ConnectionTimeoutError,
    InvalidURL,
    ServerDisconnectedError,
)

from ports import free_ports
from rollbook.records.failure_kinds import Delivery
from rollbook.servers.http.client_pool import (
    current_wire_calls,
    get_global_aiohttp_client,
    global_aiohttp_client_exit,
    set_global_aiohttp_client,
)
from rollbook.servers.http.delivery import delivery_of_error
from rollbook.servers.http.embedded_call import EmbeddedRequest
from rollbook.servers.http.http_client import request
from rollbook.servers.http.wire_calls import base_of, client_error, may_carry
from rollbook.servers.wire.broken import Broken, Kind

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
ASKED = EmbeddedRequest("POST", "http://model:8000", "/v1/responses", {}, b"{}")


@pytest.fixture(autouse=True)
async def closed_pool():
    yield
    await global_aiohttp_client_exit()


class Endpoint:
    """A model's endpoint that answers with a script, then with OK, and keeps its connections."""

    def __init__(self, *replies):
        self.replies, self.heads, self.connections, self.most, self.busy = list(replies), [], 0, 0, 0
        self.came = asyncio.Semaphore(0)
        self.go_on = asyncio.Event()
        self.go_on.set()

    async def serve(self, reader, writer):
        self.connections += 1
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                await reader.readexactly(int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0] or 0))
                self.heads.append(head.decode())
                self.busy += 1
                self.came.release()
                self.most = max(self.most, self.busy)
                await self.go_on.wait()
                self.busy -= 1
                writer.write(self.replies.pop(0) if self.replies else OK)
        except asyncio.IncompleteReadError:
            return
        finally:
            writer.close()

    @asynccontextmanager
    async def running(self):
        server = await asyncio.start_server(self.serve, "127.0.0.1", 0)
        async with server:
            yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1/responses"
            await global_aiohttp_client_exit()


async def ask(url, **options):
    return await request("POST", url, _model_call=True, json={"input": "hi"}, **options)


async def test_a_model_call_goes_out_with_the_callers_headers_and_reads_like_aiohttps_reply():
    endpoint = Endpoint(b"HTTP/1.1 429 Too Many Requests\r\nRetry-After: 3\r\nContent-Length: 4\r\n\r\nbusy")
    async with endpoint.running() as url:
        reply = await ask(url, headers={"Authorization": "Bearer key"})
    assert (reply.status, reply.reason, await reply.read()) == (429, "Too Many Requests", b"busy")
    assert (reply.headers["Retry-After"], str(reply.url), reply.method) == ("3", url, "POST")
    head = endpoint.heads[0].lower()
    assert "authorization: bearer key\r\n" in head
    assert "content-type: application/json\r\n" in head
    assert head.count("accept-encoding: ") == head.count("user-agent: ") == head.count("host: ") == 1


async def test_calls_one_after_the_other_share_a_connection():
    endpoint = Endpoint()
    async with endpoint.running() as url:
        for _ in range(5):
            await ask(url)
    assert (len(endpoint.heads), endpoint.connections) == (5, 1)


async def test_a_compressed_reply_is_read():
    body = gzip.compress(b'{"a": 1}')
    head = f"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    async with Endpoint(head + body).running() as url:
        assert await (await ask(url)).json(content_type=None) == {"a": 1}


async def test_a_redirect_of_a_model_call_is_followed():
    moved = b"HTTP/1.1 307 Temporary Redirect\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n"
    endpoint = Endpoint(moved)
    async with endpoint.running() as url:
        reply = await ask(url)
    assert reply.status == 200
    assert [head.partition(" HTTP")[0] for head in endpoint.heads] == ["POST /v1/responses", "POST /elsewhere"]
    assert [earlier.status for earlier in reply.history] == [307]


async def test_no_more_calls_are_under_way_than_the_pool_has_connections():
    set_global_aiohttp_client({"global_aiohttp_connector_limit_per_host": 2})
    endpoint = Endpoint()
    endpoint.go_on.clear()
    async with endpoint.running() as url, asyncio.TaskGroup() as group:
        for _ in range(4):
            group.create_task(ask(url))
        await endpoint.came.acquire()
        await endpoint.came.acquire()
        endpoint.go_on.set()
    assert (len(endpoint.heads), endpoint.most) == (4, 2)


async def test_a_call_that_waits_for_a_connection_uses_up_its_time():
    set_global_aiohttp_client(
        {"global_aiohttp_connector_limit_per_host": 1, "global_aiohttp_model_call_timeout_seconds": 0.05}
    )
    endpoint = Endpoint()
    endpoint.go_on.clear()
    async with endpoint.running() as url:
        calls = await asyncio.gather(ask(url), ask(url), return_exceptions=True)
        endpoint.go_on.set()
    assert [type(call) for call in calls] == [TimeoutError, TimeoutError]


async def test_a_call_between_servers_keeps_every_cookie_that_a_reply_sets():
    head = b"HTTP/1.1 200 OK\r\nSet-Cookie: a=1; path=/\r\nSet-Cookie: b=2; path=/\r\nContent-Length: 2\r\n\r\n{}"
    endpoint = Endpoint(head)
    async with endpoint.running() as url:
        reply = await request("POST", url, _internal=True, json={}, cookies={"c": "3"})
    assert {name: morsel.value for name, morsel in reply.cookies.items()} == {"a": "1", "b": "2"}
    assert "cookie: c=3\r\n" in endpoint.heads[0].lower()


async def test_a_reply_that_is_read_as_it_arrives_is_aiohttps():
    endpoint = Endpoint()
    async with endpoint.running() as url:
        reply = await request("POST", url, _internal=True, _streamed=True, json={})
        assert await reply.read() == b"{}"
    assert "aiohttp" in endpoint.heads[0]


@pytest.mark.parametrize(
    "knobs",
    [{"global_aiohttp_trust_env": True}, {"global_aiohttp_read_timeout_seconds": 5}],
    ids=["proxies", "silence"],
)
async def test_what_only_aiohttp_does_is_left_to_it(knobs):
    set_global_aiohttp_client(knobs)
    assert current_wire_calls() is None
    endpoint = Endpoint()
    async with endpoint.running() as url:
        assert (await ask(url)).status == 200
    assert "aiohttp" in endpoint.heads[0]


@pytest.mark.parametrize("name", ["User-Agent", "Host", "Accept", "Transfer-Encoding", "Connection"])
def test_headers_that_the_wire_client_writes_itself_stay_with_aiohttp(name):
    ours = {"accept": "*/*", "user-agent": "rollbook", "authorization": "Bearer key"}
    assert may_carry(ours)
    assert not may_carry({**ours, name.lower(): "something of the caller's"})


@pytest.mark.parametrize(
    ("method", "url", "base"),
    [
        ("POST", "http://model:8000/v1/responses", "http://model:8000"),
        ("POST", "http://[::1]:8000/v1", "http://[::1]:8000"),
        ("GET", "http://model:8000/v1/models", None),
        ("POST", "https://model/v1/responses", None),
        ("POST", "http://user:secret@model/v1", None),
        ("POST", "http://model?query", None),
        ("POST", "nonsense", None),
    ],
)
def test_plain_posts_over_http_are_carried(method, url, base):
    assert base_of(method, url) == base


@pytest.mark.parametrize(
    ("kind", "error", "delivery"),
    [
        (Kind.NOT_CONNECTED, ClientConnectorError, Delivery.NOT_SENT),
        (Kind.LOCAL, ClientConnectorError, Delivery.NOT_SENT),
        (Kind.UNKNOWN_HOST, ClientConnectorDNSError, Delivery.NOT_SENT),
        (Kind.TOO_LATE, ConnectionTimeoutError, Delivery.NOT_SENT),
        (Kind.BAD_URL, InvalidURL, Delivery.NOT_SENT),
        (Kind.DISCONNECTED, ServerDisconnectedError, Delivery.POSSIBLY_DELIVERED),
        (Kind.RESET, ClientOSError, Delivery.POSSIBLY_DELIVERED),
        (Kind.NO_HTTP, ClientResponseError, Delivery.POSSIBLY_DELIVERED),
        (Kind.CUT_SHORT, ClientPayloadError, Delivery.POSSIBLY_DELIVERED),
        (Kind.UNKNOWN_ENCODING, ClientPayloadError, Delivery.POSSIBLY_DELIVERED),
        (Kind.TOO_LARGE, ClientPayloadError, Delivery.POSSIBLY_DELIVERED),
    ],
)
def test_what_was_seen_of_a_call_is_told_by_aiohttps_class_for_it(kind, error, delivery):
    told = client_error(Broken(kind, "seen"), ASKED)
    assert type(told) is error
    assert delivery_of_error(told) is delivery


async def test_an_endpoint_that_is_not_there_is_named():
    (port,) = free_ports(1)
    with pytest.raises(ClientConnectorError, match=rf"Cannot connect to host 127\.0\.0\.1:{port} ssl:default \[.+\]"):
        await ask(f"http://127.0.0.1:{port}/v1", _connect_grace=0.0)
    assert not get_global_aiohttp_client().closed
