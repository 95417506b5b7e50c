"""What is asked of a server once ends when its time is over, whatever the server does meanwhile."""

import socket
import threading
from contextlib import contextmanager

import pytest

from rollbook.config.types import BaseServerConfig
from rollbook.errors import HeadServerUnreachableError
from rollbook.servers import head_lookup
from rollbook.servers.head_lookup import fetch_global_config, root_status


@contextmanager
def answering(pieces, pause=0.0):
    """Say `pieces` to who connects, with a pause before each one, and yield the address."""
    over = threading.Event()

    def serve(listener):
        accepted, _ = listener.accept()
        with accepted:
            accepted.recv(4096)
            for piece in pieces:
                if over.wait(pause):
                    return
                try:
                    accepted.sendall(piece)
                except OSError:
                    return

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, args=(listener,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            over.set()
            thread.join()


def test_a_head_that_comes_drop_by_drop_takes_no_longer_than_there_is():
    head = [b"HTTP/1.1 200 OK\r\nX: ", *[b"a"] * 40, b"\r\n\r\n"]
    with answering(head, pause=0.05) as url:
        assert root_status(url, 0.4) == "timeout"


@pytest.mark.parametrize(
    ("pieces", "found"),
    [
        ([b"HTTP/1.1 200 ", b"OK\r\n", b"Content-Length: 7\r\n", b"\r\n"], "success"),
        ([b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n"], "success"),
        ([b"HTTP/1.1 503 Not Yet\r\n\r\n"], "success"),
        ([b"HTTP/1.0 200 OK\n\n"], "success"),
        ([], "connection_error"),
        ([b"SSH-2.0-OpenSSH\r\n"], "unknown_error"),
        ([b"HTTP/1.1 many\r\n\r\n"], "unknown_error"),
    ],
)
def test_any_answer_of_http_is_one_and_nothing_else(pieces, found):
    with answering(pieces) as url:
        assert root_status(url, 30) == found


@pytest.mark.parametrize("url", ["http://127.0.0.1:x", "http://127.0.0.1:99999", "http://[::1", "http://a b/"])
def test_an_address_that_is_none_is_no_server(url):
    assert root_status(url, 30) == "unknown_error"


CONFIGURATION = b'"adder: {responses_api_agents: {a: {entrypoint: app.py, host: h, port: 2}}}"'


def head_at(url):
    return BaseServerConfig(host="127.0.0.1", port=int(url.rpartition(":")[2]))


@pytest.mark.parametrize(
    "pieces",
    [
        [b"HTTP/1.1 200 OK\r\nX: ", *[b"a"] * 40],
        [b"HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n", *[b" "] * 40],
        [b"HTTP/1.1 200 OK\r\n\r\n", *[b" "] * 40],
        [b"HTTP/1.1 100 Continue\r\n\r\n"] * 40,
    ],
    ids=["head", "body", "body until the close", "interim replies"],
)
def test_a_configuration_that_comes_drop_by_drop_takes_no_longer_than_there_is(pieces):
    with answering(pieces, pause=0.05) as url, pytest.raises(HeadServerUnreachableError, match=r"\(timed out\)"):
        fetch_global_config(head_at(url), 0.4)


@pytest.mark.parametrize("head", [b"", b"Content-Length: 999999999999\r\n"])
def test_a_configuration_without_end_is_not_read_into_memory(head, monkeypatch):
    monkeypatch.setattr(head_lookup, "MOST_BYTES", 100_000)
    endless = [b"HTTP/1.1 200 OK\r\n" + head + b"\r\n", *[b" " * 65_536] * 1000]
    with answering(endless) as url, pytest.raises(HeadServerUnreachableError, match="more than 100000 bytes"):
        fetch_global_config(head_at(url), 30)


@pytest.mark.parametrize("missing", [1, 500])
def test_a_configuration_that_ends_before_its_length_is_none(missing):
    head = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (len(CONFIGURATION) + missing)
    found = rf"\(its answer ended {missing} bytes before the length"
    with answering([head + CONFIGURATION]) as url, pytest.raises(HeadServerUnreachableError, match=found):
        fetch_global_config(head_at(url), 30)


@pytest.mark.parametrize(
    "framed",
    [
        b"Content-Length: %d\r\n\r\n%b" % (len(CONFIGURATION), CONFIGURATION),
        b"\r\n" + CONFIGURATION,
        b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n\r\n" % (len(CONFIGURATION), CONFIGURATION),
    ],
    ids=["length", "until the close", "chunks"],
)
def test_a_configuration_is_read_however_it_is_framed(framed):
    with answering([b"HTTP/1.1 200 OK\r\n" + framed]) as url:
        assert fetch_global_config(head_at(url), 30).adder.responses_api_agents.a.port == 2


@pytest.mark.parametrize("status", [b"404 Not Found", b"500 Oh No", b"302 Found", b"204 Nothing", b"799"])
def test_a_head_server_that_gives_no_configuration_is_quoted(status):
    said = b"HTTP/1.1 " + status + b"\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n"
    with (
        answering([said]) as url,
        pytest.raises(HeadServerUnreachableError, match=rf"\(it answered {status.decode()}\)"),
    ):
        fetch_global_config(head_at(url), 30)
