"""A server that says exactly what it is told to, and counts what it was asked."""

import asyncio
import socket
import ssl
import struct
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from rollbook.records.exchange import Exchange, Phase
from rollbook.servers.wire.poster import Poster

IDENTITY = Path(__file__).with_name("loopback.pem")
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
CLOSE, RESET, HOLD, AT_ONCE = "close", "reset", "hold", "close before reading"


@dataclass(eq=False)
class Scripted:
    """Answers every request with `says`, in pieces of `piece` bytes, and does `then` to the connection."""

    says: bytes = OK
    then: str = HOLD
    piece: int = 1 << 30
    requests: list[bytes] = field(default_factory=list)
    opened: int = 0
    connections: set["_Peer"] = field(default_factory=set)
    asked: asyncio.Event = field(default_factory=asyncio.Event)

    @asynccontextmanager
    async def running(self, port=0, tls=None):
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: _Peer(self), "127.0.0.1", port, ssl=tls)
        try:
            yield f"http{'s' if tls else ''}://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        finally:
            server.close()
            await server.wait_closed()

    async def all_closed(self):
        await turned_until(lambda: not self.connections)


class _Peer(asyncio.Protocol):
    def __init__(self, server):
        self.server = server
        self.read = b""

    def connection_made(self, transport):
        self.transport = transport
        self.server.opened += 1
        self.server.connections.add(self)
        if self.server.then == AT_ONCE:
            transport.abort()

    def connection_lost(self, exc):
        self.server.connections.discard(self)

    def data_received(self, data):
        self.read += data
        head, found, body = self.read.partition(b"\r\n\r\n")
        if not found:
            return
        length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
        if len(body) < length:
            return
        self.server.requests.append(self.read)
        self.read = b""
        self.say(self.server.says)
        self.server.asked.set()

    def say(self, left):
        self.transport.write(left[: self.server.piece])
        left = left[self.server.piece :]
        if left:
            asyncio.get_running_loop().call_soon(self.say, left)
        elif self.server.then == CLOSE:
            self.transport.close()
        elif self.server.then == RESET:
            asyncio.get_running_loop().call_soon(self.reset)

    def reset(self):
        """Close the connection as one that broke, once what was said is out."""
        linger = struct.pack("ii", 1, 0)
        self.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        self.transport.abort()


async def turned_until(true):
    """Let the loop turn until `true()`."""
    async with asyncio.timeout(60):
        while not true():  # noqa: ASYNC110  what is waited for is another's state
            await asyncio.sleep(0)


def identity():
    """A TLS context that serves as 127.0.0.1."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(IDENTITY)
    return context


class Clock:
    """Time that stands until it is moved."""

    def __init__(self):
        self.at = 1000.0

    def __call__(self):
        return self.at


@asynccontextmanager
async def posting(**options):
    """A client whose idle connections go by a clock that stands, and which waits for no server."""
    poster = Poster(**{"grace_seconds": 0, "now": Clock(), **options})
    try:
        yield poster
    finally:
        await poster.aclose()


class Watched(Exchange):
    """An exchange that remembers its phases."""

    def __init__(self, seconds=None):
        super().__init__(lambda: 0.0, seconds)
        self.phases = []

    def enter(self, phase: Phase) -> None:
        self.phases.append(phase)
        super().enter(phase)
