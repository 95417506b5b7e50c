"""What is sent, how far it has come, and what a cancelled request leaves."""

import asyncio
import errno
import logging
import os
import resource
import socket
from contextlib import contextmanager

import pytest

from rollbook.records.exchange import Phase, SendFailed
from rollbook.records.failure_kinds import Delivery
from rollbook.servers.wire import connecting
from rollbook.servers.wire.broken import Kind, not_connected
from unit.servers_wire.scripted import HOLD, IDENTITY, OK, Clock, Scripted, Watched, identity, posting, turned_until

pytestmark = pytest.mark.filterwarnings("error::ResourceWarning", "ignore:Overriding the .event_loop_policy")


def closed_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


async def failure(poster, url, **options):
    with pytest.raises(SendFailed) as caught:
        await poster.post("colours", url, b"{}", Watched(), **options)
    return caught.value


async def test_a_request_is_one_head_and_one_body():
    server = Scripted()
    async with server.running() as url, posting() as poster:
        await poster.post("colours", url + "/a b?c=\xe9#d", b'{"x": 1}', Watched(12.5))
    head, _, body = server.requests[0].partition(b"\r\n\r\n")
    assert body == b'{"x": 1}'
    assert head.decode().split("\r\n") == [
        "POST /a%20b?c=%C3%A9 HTTP/1.1",
        f"Host: {url.removeprefix('http://')}",
        "Accept: */*",
        "User-Agent: rollbook",
        "Content-Type: application/json",
        "X-Rollout-Deadline: 12.5",
        "Content-Length: 8",
    ]


async def test_a_header_that_http_cannot_carry_is_refused_before_anything_is_sent():
    server = Scripted()
    async with server.running() as url, posting() as poster:
        with pytest.raises(ValueError, match="no header that HTTP can carry"):
            await poster.post("colours", url, b"{}", Watched(), headers={"X-Own": "1\r\nX-Other: 2"})
    assert server.opened == 0


async def test_an_exchange_is_told_where_its_request_stands():
    exchange = Watched()
    server = Scripted()
    async with server.running() as url, posting() as poster:
        await poster.post("colours", url, b"{}", exchange)
    assert exchange.phases == [Phase.WAITING, Phase.READING]
    assert (exchange.host, exchange.status) == (url.removeprefix("http://"), 200)


ADDRESSES = {
    "ftp://127.0.0.1/": "NonHttpUrlClientError",
    "127.0.0.1:80": "NonHttpUrlClientError",
    "http://": "InvalidURL",
    "http://127.0.0.1:x/": "InvalidURL",
    "http://127.0.0.1:99999/": "InvalidURL",
    "http://[::1/": "InvalidURL",
    f"http://{'a' * 70}.example/": "InvalidURL",
    "http://a b/": "InvalidURL",
}


@pytest.mark.parametrize(("url", "kind"), ADDRESSES.items())
async def test_an_address_that_is_none_is_refused_at_once(url, kind):
    async with posting(grace_seconds=600) as poster:
        refused = await failure(poster, url)
    assert (refused.exception_type, refused.delivery) == (kind, Delivery.NOT_SENT)


async def test_a_refused_connection_is_known_not_to_be_sent():
    url = f"http://127.0.0.1:{closed_port()}/run"
    async with posting() as poster:
        refused = await failure(poster, url)
    assert str(refused).startswith(f"colours at {url}: ClientConnectorError: ")
    assert (refused.delivery, refused.status) == (Delivery.NOT_SENT, None)


async def test_an_unknown_host_is_known_not_to_be_sent():
    async with posting() as poster:
        refused = await failure(poster, "http://nowhere.invalid:80/run")
    assert (refused.exception_type, refused.delivery) == ("ClientConnectorDNSError", Delivery.NOT_SENT)


async def test_a_host_is_looked_up_by_name_and_each_of_its_addresses_is_tried():
    server = Scripted()
    async with server.running() as url, posting() as poster:
        assert (await poster.post("colours", url.replace("127.0.0.1", "localhost"), b"{}", Watched())).status == 200


async def test_a_server_that_does_not_speak_tls_is_known_not_to_be_sent_to():
    server = Scripted(b"HTTP/1.1 400 Bad\r\n\r\n")
    async with server.running() as url, posting() as poster:
        asked = asyncio.create_task(failure(poster, url.replace("http:", "https:")))
        await turned_until(lambda: server.connections)
        next(iter(server.connections)).transport.write(b"HTTP/1.1 400 Bad\r\n\r\n")
        refused = await asked
    assert (refused.exception_type, refused.delivery) == ("ClientConnectorSSLError", Delivery.NOT_SENT)
    assert not server.requests


async def test_a_server_whose_certificate_nobody_trusts_is_known_not_to_be_sent_to():
    server = Scripted()
    async with server.running(tls=identity()) as url, posting() as poster:
        refused = await failure(poster, url)
    assert (refused.exception_type, refused.delivery) == ("ClientConnectorCertificateError", Delivery.NOT_SENT)
    assert not server.requests


async def test_a_server_that_speaks_tls_alone_breaks_off():
    server = Scripted()
    async with server.running(tls=identity()) as url, posting() as poster:
        broken = await failure(poster, url.replace("https:", "http:"))
    assert broken.delivery is Delivery.POSSIBLY_DELIVERED
    assert not server.requests


@pytest.fixture
def trusted(monkeypatch):
    monkeypatch.setenv("SSL_CERT_FILE", str(IDENTITY))
    connecting._trusted.cache_clear()
    yield
    connecting._trusted.cache_clear()


async def test_a_server_behind_tls_is_asked_as_any_other_and_its_connection_used_again(trusted):
    server, clock = Scripted(), Clock()
    async with server.running(tls=identity()) as url, posting(now=clock) as poster:
        for _ in range(3):
            assert (await poster.post("colours", url, b"{}", Watched())).body == b"{}"
            clock.at += 0.025
    assert (server.opened, len(server.requests)) == (1, 3)
    await server.all_closed()


async def test_a_connection_that_does_not_come_up_in_time_is_known_not_to_be_sent():
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        fillers = [socket.socket() for _ in range(4)]
        for filler in fillers:
            filler.settimeout(0)
            filler.connect_ex(full.getsockname())
        async with posting(connect_seconds=0.05) as poster:
            refused = await failure(poster, f"http://127.0.0.1:{full.getsockname()[1]}")
        for filler in fillers:
            filler.close()
    assert (refused.exception_type, refused.delivery) == ("ConnectionTimeoutError", Delivery.NOT_SENT)


async def test_a_server_that_comes_up_within_the_grace_is_used_and_its_absence_said_at_once(caplog):
    server, port = Scripted(), closed_port()
    async with posting(grace_seconds=600, retry_seconds=0.01) as poster:
        with caplog.at_level(logging.WARNING):
            asked = asyncio.create_task(
                poster.post("colours", f"http://127.0.0.1:{port}/run?key=secret", b"{}", Watched())
            )
            await turned_until(lambda: caplog.records)
        assert not asked.done()
        async with server.running(port):
            assert (await asked).status == 200
    (said,) = [record.getMessage() for record in caplog.records]
    assert said.startswith(f"colours at http://127.0.0.1:{port}/run failed: ClientConnectorError: ")
    assert len(server.requests) == 1


async def test_a_grace_ends_by_its_clock_or_when_the_server_is_gone():
    url = f"http://127.0.0.1:{closed_port()}"
    clock = Clock()

    def gone():
        clock.at += 400
        return False

    async with posting(grace_seconds=600, retry_seconds=0.0, now=clock) as poster:
        assert (await failure(poster, url, gone=gone)).delivery is Delivery.NOT_SENT
        assert (await failure(poster, url, gone=lambda: True)).delivery is Delivery.NOT_SENT
    assert clock.at == 1800


@contextmanager
def no_more_files():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    lowest = os.dup(0)
    os.close(lowest)
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


async def test_running_out_of_files_is_this_machines_fault_and_nothing_is_sent():
    server = Scripted()
    async with server.running() as url, posting() as poster:
        with no_more_files():
            refused = await failure(poster, url)
        assert (await poster.post("colours", url, b"{}", Watched())).status == 200
    assert (refused.exception_type, refused.delivery) == ("LocalResourceError", Delivery.NOT_SENT)
    assert len(server.requests) == 1


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.EADDRNOTAVAIL])
def test_what_this_machine_lacks_is_told_apart_from_what_a_server_refuses(number):
    assert not_connected(OSError(number, "")).kind is Kind.LOCAL
    assert not_connected(OSError(errno.ECONNREFUSED, "")).kind is Kind.NOT_CONNECTED


async def test_a_request_that_is_cancelled_while_it_waits_closes_its_connection():
    server, exchange = Scripted(b"", HOLD), Watched()
    async with server.running() as url, posting() as poster:
        call = asyncio.create_task(poster.post("colours", url, b"{}", exchange))
        await server.asked.wait()
        call.cancel()
        await asyncio.wait({call})
        await server.all_closed()
    assert (exchange.phase, exchange.delivery) == (Phase.WAITING, Delivery.POSSIBLY_DELIVERED)
    assert len(server.requests) == 1


async def test_a_request_that_is_cancelled_while_its_reply_comes_closes_its_connection():
    server, exchange = Scripted(OK[:-1], HOLD), Watched()
    async with server.running() as url, posting() as poster:
        call = asyncio.create_task(poster.post("colours", url, b"{}", exchange))
        await turned_until(lambda: exchange.status)
        call.cancel()
        await asyncio.wait({call})
        await server.all_closed()
    assert exchange.delivery is Delivery.DELIVERED


@pytest.mark.parametrize("turns", range(6))
async def test_a_request_that_is_cancelled_while_it_connects_leaves_nothing(turns):
    server = Scripted()
    async with server.running() as url, posting() as poster:
        call = asyncio.create_task(poster.post("colours", url, b"{}", Watched()))
        for _ in range(turns):
            await asyncio.sleep(0)
        call.cancel()
        await asyncio.wait({call})
    await server.all_closed()


async def test_a_request_that_is_cancelled_within_the_grace_leaves_nothing(caplog):
    async with posting(grace_seconds=600) as poster:
        call = asyncio.create_task(poster.post("colours", f"http://127.0.0.1:{closed_port()}", b"{}", Watched()))
        await turned_until(lambda: caplog.records)
        call.cancel()
        await asyncio.wait({call})
    assert call.cancelled()


async def test_closing_the_client_ends_what_is_under_way_and_refuses_what_comes_after():
    server = Scripted(b"", HOLD)
    async with server.running() as url, posting() as poster:
        call = asyncio.create_task(failure(poster, url))
        await server.asked.wait()
        await poster.aclose()
        assert (await call).delivery is Delivery.POSSIBLY_DELIVERED
        assert (await failure(poster, url)).delivery is Delivery.NOT_SENT
        await server.all_closed()
    assert len(server.requests) == 1


async def test_closing_the_client_ends_what_is_still_connecting():
    server = Scripted()
    async with server.running() as url, posting() as poster:
        call = asyncio.create_task(failure(poster, url))
        await asyncio.sleep(0)
        await poster.aclose()
        assert (await call).delivery is Delivery.NOT_SENT
        await server.all_closed()
    assert not server.requests


async def test_proxies_of_the_environment_are_not_asked(monkeypatch):
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{closed_port()}")
    server = Scripted()
    async with server.running() as url, posting() as poster:
        assert (await poster.post("colours", url, b"{}", Watched())).status == 200
