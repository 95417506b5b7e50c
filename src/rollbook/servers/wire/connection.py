"""One socket, which carries one request at a time.

Rules:
* Head and body go out in one write, and go out once; a body that is not in memory follows in pieces.
* A connection that says anything while nobody asks, or ends, is closed. So is one whose server answered before it had
  taken the whole body: what is left of that would be read as the next request.
* Cancelling a request closes its connection at once.
* What arrives is read into memory that all connections of a loop share, since only one of them reads at a time; what is
  kept of it is copied out once.

Source: RFC 9112 §9.
"""

import asyncio
import math
import select
import socket
import struct
import sys
from collections.abc import Callable, Iterator, Mapping, MutableSet
from typing import Any, Final, cast

from rollbook.records.exchange import Exchange, Phase, Reply
from rollbook.servers.http.socket_options import tune_socket
from rollbook.servers.wire.broken import Broken
from rollbook.servers.wire.reply_reader import RawHeaders, ReplyReader

_WAITING: Final = Phase.WAITING
_TCP_INFO_BYTES: Final = 72
_RTT_AT: Final = 68
_MICROSECONDS: Final = 1e6


READ_AT_ONCE: Final = 256 * 1024


class Connection(asyncio.BufferedProtocol):
    """A connection. `opened` holds it while its socket is open; `lost` is told when it no longer is.

    `arrived` is where what it is sent arrives, on the loop's own thread.

    `idle_since`, `idle_until` and `rested` are the pool's: between which times it may be asked again, and how long it
    lay idle before it was. `round_trip` is in seconds, as the kernel measured it when the connection came up; infinity
    where it does not tell.
    """

    __slots__ = (
        "_arrived",
        "_full",
        "_lost",
        "_opened",
        "_options",
        "_readable",
        "_reader",
        "_reply",
        "_transport",
        "closed",
        "idle_since",
        "idle_until",
        "rested",
        "round_trip",
    )

    def __init__(
        self,
        options: Mapping[str, int],
        opened: MutableSet["Connection"],
        lost: Callable[["Connection"], None],
        arrived: memoryview,
    ) -> None:
        self._arrived = arrived
        self._options = options
        self._opened = opened
        self._lost = lost
        self._readable = select.poll()
        self._transport: asyncio.Transport
        self._reader: ReplyReader | None = None
        self._reply: asyncio.Future[Reply] | None = None
        self._full: asyncio.Future[None] | None = None
        self.closed = True
        self.idle_since = 0.0
        self.idle_until = 0.0
        self.rested = 0.0
        self.round_trip = math.inf

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Set the socket's options."""
        self.closed = False
        self._opened.add(self)
        self._transport = cast("asyncio.Transport", transport)
        sock = transport.get_extra_info("socket")
        tune_socket(sock, self._options)
        self.round_trip = _round_trip(sock)
        self._readable.register(sock.fileno(), select.POLLIN)

    @property
    def is_quiet(self) -> bool:
        """Whether nothing has arrived that nobody has read: an end, or bytes that nobody asked for.

        The kernel is asked, since what it has may not have reached a loop that is busy.
        """
        return not (self.closed or self._transport.is_closing() or self._readable.poll(0))

    async def carry(
        self,
        request: bytes,
        exchange: Exchange,
        limit: int,
        pieces: Iterator[bytes] | None = None,
        raw: RawHeaders | None = None,
    ) -> tuple[Reply, float]:
        """Send a request; return its reply, and how long the connection may then lie idle, in seconds.

        `pieces` are what follows `request`, where it does not hold the whole body; `raw` is given the reply's headers.

        Raises:
            Broken: no whole reply came; the connection is closed.

        """
        transport = self._transport
        reader = self._reader = ReplyReader(exchange, limit, raw)
        awaited = self._reply = asyncio.get_running_loop().create_future()
        try:
            exchange.enter(_WAITING)
            transport.write(request)
            is_written = pieces is None or await self._write_all(pieces, awaited)
            reply = await awaited
        except BaseException:
            self.abort()
            raise
        finally:
            reader.release()
            self._reader = self._reply = None
            del awaited
        is_sent = is_written and not transport.get_write_buffer_size()
        return reply, reader.idle_seconds if is_sent and not self.closed else 0.0

    async def _write_all(self, pieces: Iterator[bytes], awaited: asyncio.Future[Reply]) -> bool:
        """Write as fast as they are taken, until there is a reply; return whether all of them were written."""
        for piece in pieces:
            if awaited.done():
                return False
            self._transport.write(piece)
            if self._full is not None:
                waits: tuple[asyncio.Future[Any], ...] = (self._full, awaited)
                await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        return not awaited.done()

    def pause_writing(self) -> None:
        """Wait before more is written."""
        self._full = asyncio.get_running_loop().create_future()

    def resume_writing(self) -> None:
        """Write on."""
        if self._full is not None and not self._full.done():
            self._full.set_result(None)
        self._full = None

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return where what comes next goes."""
        del sizehint
        return self._arrived

    def buffer_updated(self, nbytes: int) -> None:
        """Read on."""
        reader, awaited = self._reader, self._reply
        if reader is None or awaited is None or awaited.done():
            self.abort()
            return
        try:
            reply = reader.feed(self._arrived[:nbytes])
        except Broken as error:
            self.abort()
            awaited.set_exception(error)
        else:
            if reply is not None:
                awaited.set_result(reply)

    def eof_received(self) -> None:
        """Take the end of what the server says for the end of the connection."""
        self._ended(None)
        self.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Settle what is under way."""
        self.closed = True
        self.resume_writing()
        self._ended(exc)
        self._opened.discard(self)
        self._lost(self)

    def _ended(self, error: Exception | None) -> None:
        reader, awaited = self._reader, self._reply
        if reader is None or awaited is None or awaited.done():
            return
        try:
            awaited.set_result(reader.end(error))
        except Broken as fault:
            awaited.set_exception(fault)

    def abort(self) -> None:
        """Close the socket now, whatever is under way."""
        self.closed = True
        self._transport.abort()


def _round_trip(sock: socket.socket) -> float:
    """Return the round trip of a new connection, which a busy loop would measure too long; infinity if unknown."""
    if sys.platform != "linux":
        return math.inf
    info = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TCP_INFO_BYTES)
    (microseconds,) = struct.unpack_from("=I", info, _RTT_AT)
    return microseconds / _MICROSECONDS if microseconds else math.inf
