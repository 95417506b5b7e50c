"""What a connection of ours writes: a reply's head and body in one piece, and nothing late."""

import asyncio

import pytest

from rollbook.servers.http.listening import OnePiece

HEAD = b"HTTP/1.1 200 OK\r\n\r\n"


class Written(asyncio.Transport):
    """A transport that keeps what it was given to write."""

    def __init__(self) -> None:
        super().__init__({"peername": "it"})
        self.pieces: list[bytes] = []
        self.closed = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.pieces.append(bytes(data))

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True


@pytest.mark.parametrize(
    ("body", "pieces"),
    [
        (b"body", [HEAD + b"body"]),
        (b"", [HEAD]),
        (HEAD, [HEAD + HEAD]),
        (b"x" * 70_000, [HEAD, b"x" * 70_000]),
    ],
)
async def test_a_head_is_sent_with_the_body_that_follows_it_at_once(body, pieces):
    written = Written()
    joined = OnePiece(written, asyncio.get_running_loop())
    joined.write(HEAD)
    joined.write(body)
    await asyncio.sleep(0)
    assert written.pieces == pieces
    joined.write(b"more")
    assert written.pieces == [*pieces, b"more"]


async def test_a_head_that_nothing_follows_is_sent_when_the_loop_comes_around():
    written = Written()
    joined = OnePiece(written, asyncio.get_running_loop())
    joined.write(HEAD)
    assert written.pieces == []
    await asyncio.sleep(0)
    assert written.pieces == [HEAD]


async def test_closing_sends_what_waits_and_nothing_is_sent_afterwards():
    written = Written()
    joined = OnePiece(written, asyncio.get_running_loop())
    joined.write(HEAD)
    joined.close()
    await asyncio.sleep(0)
    assert (written.pieces, written.closed) == ([HEAD], True)
    lost = OnePiece(written, asyncio.get_running_loop())
    lost.write(HEAD)
    await asyncio.sleep(0)
    assert written.pieces == [HEAD]


async def test_all_else_is_the_transports_own():
    joined = OnePiece(Written(), asyncio.get_running_loop())
    assert joined.get_extra_info("peername") == "it"
