"""A probe of a server's root ends when its time is over, whatever the server does meanwhile."""

import socket
import threading
from contextlib import contextmanager

import pytest

from rollbook.servers.head_lookup import root_status


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
