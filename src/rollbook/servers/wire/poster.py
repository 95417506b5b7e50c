"""The client that rollouts are sent with: one POST, one reply.

Rules:
* One call is one request. Nothing of which a byte was handed to a socket is sent again, and a redirect is a reply.
* A connection that does not come up is tried again until the grace is over, or the server is known to be gone; the
  first failure is logged at once. Then the request is known not to be sent.
* No time limit runs while a reply is awaited: whoever has one cancels the call, which closes the connection at once.
* Proxy variables of the environment are ignored, `global_aiohttp_trust_env` or not; there are no cookies.

Source: collection.md §3.2, §3.6, §3.7; servers.md §4.1.
"""

import asyncio
import logging
import math
import time
from collections.abc import Callable, Mapping
from typing import Final

from rollbook.config.secrets import masked_urls
from rollbook.records.exchange import Exchange, Reply, SendFailed, Upload
from rollbook.servers.http.socket_options import TCP_KEEPALIVE
from rollbook.servers.wire.body import keep_freed_memory
from rollbook.servers.wire.broken import Broken, Kind
from rollbook.servers.wire.connecting import connected
from rollbook.servers.wire.connection import READ_AT_ONCE, Connection
from rollbook.servers.wire.names import Names
from rollbook.servers.wire.reply_reader import RawHeaders
from rollbook.servers.wire.resting import IDLE_SECONDS, Resting
from rollbook.servers.wire.room import Room, connections_that_fit
from rollbook.servers.wire.target import JSON, Endpoint, Target, request_of, target_of

CONNECT_SECONDS: Final = 10.0
CONNECT_GRACE_SECONDS: Final = 60.0
MAX_REPLY_BYTES: Final = 512 * 1024 * 1024
RETRY_SECONDS: Final = 0.5
_LOG_EVERY_SECONDS: Final = 10.0
_SWEEP_SECONDS: Final = 0.2
_CLOSING_TURNS: Final = 20
_LOG = logging.getLogger(__name__)


class _Line:
    """What is known of the way to one endpoint."""

    __slots__ = ("quiet_until", "resting")

    def __init__(self, idle_seconds: float, *, rests: bool) -> None:
        self.resting = Resting(idle_seconds, rests=rests)
        self.quiet_until = -math.inf


class Poster:
    """Sends requests, each once, and keeps the connections that may be used again.

    `connect_seconds` bounds one attempt to connect, `grace_seconds` how long attempts go on with pauses of
    `retry_seconds`, `max_reply_bytes` the body of a reply, decoded. `idle_seconds` is how long a connection may lie
    idle and be used again; 0 has each request take one of its own. Without `rests` it may be used again
    at once, all that time: for callers that send again what met the end of its connection, or whose servers let
    connections lie idle for longer. `tcp_keepalive` holds options of sockets by name,
    `now` is the clock of graces and idle connections.
    """

    def __init__(
        self,
        *,
        connect_seconds: float = CONNECT_SECONDS,
        grace_seconds: float = CONNECT_GRACE_SECONDS,
        max_reply_bytes: int = MAX_REPLY_BYTES,
        retry_seconds: float = RETRY_SECONDS,
        idle_seconds: float = IDLE_SECONDS,
        rests: bool = True,
        tcp_keepalive: Mapping[str, int] = TCP_KEEPALIVE,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._now = now
        self.max_reply_bytes = max_reply_bytes
        self.tcp_keepalive = tcp_keepalive
        self._connect_seconds = connect_seconds
        self._grace_seconds = grace_seconds
        self._retry_seconds = retry_seconds
        self._idle_seconds = idle_seconds
        self._rests = rests
        self._closed = False
        keep_freed_memory()
        self._begin(None)

    def _begin(self, loop: asyncio.AbstractEventLoop | None) -> None:
        """Start with nothing open, in `loop`; what was open in one that has ended is closed with it."""
        self._loop = loop
        self._names = Names()
        self._lines: dict[Endpoint, _Line] = {}
        self._open: set[Connection] = set()
        self._arrived = memoryview(bytearray(READ_AT_ONCE))
        self._room = Room(self._open, connections_that_fit())
        self._sweeping: asyncio.TimerHandle | None = None

    async def post(
        self,
        server: str,
        url: str,
        body: bytes | Upload,
        exchange: Exchange,
        *,
        headers: Mapping[str, str] = JSON,
        gone: Callable[[], bool] | None = None,
    ) -> Reply:
        """POST `body` to `url`, and return the whole reply.

        Args:
            server: whose address it is, for messages.
            url: the absolute address, http or https.
            body: what is posted; one that is not in memory goes out piece by piece.
            exchange: is told how far the request has come; its `seconds` go along as `X-Rollout-Deadline`.
            headers: what else the request says.
            gone: tells that the server will not come up any more, which ends the grace.

        Raises:
            SendFailed: no whole reply came; says what is known of the delivery.

        """
        try:
            return await self.exchanged(server, url, body, exchange, headers=headers, gone=gone)
        except Broken as broken:
            raise send_failed(server, masked_urls(url, ""), broken, exchange) from (broken.__cause__ or broken)

    async def exchanged(
        self,
        server: str,
        url: str,
        body: bytes | Upload,
        exchange: Exchange,
        *,
        headers: Mapping[str, str] | bytes = JSON,
        gone: Callable[[], bool] | None = None,
        raw: RawHeaders | None = None,
    ) -> Reply:
        """Do as `post` does, with `headers` that may be lines already; give `raw` the reply's headers as they came.

        Raises:
            Broken: no whole reply came.

        """
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            self._begin(loop)
        target = target_of(url)
        exchange.host = target.authority
        whole, further = (body, 0) if isinstance(body, bytes) else (b"", body.size)
        request = request_of(target, headers, exchange.seconds, whole, further)
        line = self._lines.get(target.endpoint) or self._line_to(target.endpoint)
        connection = line.resting.take(self._now()) or await self._come_up(server, target, line, gone)
        try:
            pieces = None if isinstance(body, bytes) else body.pieces()
            reply, idle = await connection.carry(request, exchange, self.max_reply_bytes, pieces, raw)
        except Broken:
            if exchange.status is None:
                line.resting.broke(connection, self._now())
            raise
        if self._room.is_wanted or not idle or not line.resting.put(connection, idle, self._now()):
            connection.abort()
        elif self._sweeping is None:
            self._sweep_later()
        return reply

    def _line_to(self, endpoint: Endpoint) -> _Line:
        if self._closed:
            raise _client_is_closed()
        return self._lines.setdefault(endpoint, _Line(self._idle_seconds, rests=self._rests))

    async def _come_up(self, server: str, target: Target, line: _Line, gone: Callable[[], bool] | None) -> Connection:
        """Return a new connection, tried for until the grace is over."""
        deadline: float | None = None
        while True:
            await self._make_room()
            began = self._now()
            deadline = began + self._grace_seconds if deadline is None else deadline
            try:
                connection = await connected(
                    target.endpoint, self._names, self._connect_seconds, lambda: self._new(line)
                )
            except Broken as broken:
                now = self._now()
                if now + self._retry_seconds > deadline or broken.kind is Kind.BAD_URL or (gone is not None and gone()):
                    raise
                if now >= line.quiet_until:
                    line.quiet_until = now + _LOG_EVERY_SECONDS
                    _LOG.warning("%s at %s failed: %s: %s; tried again", server, target.shown, broken.kind, broken.said)
            else:
                if self._closed:
                    connection.abort()
                    raise _client_is_closed()
                line.quiet_until = -math.inf
                line.resting.came_up(min(connection.round_trip, self._now() - began))
                return connection
            finally:
                self._room.opening_ended()
            await asyncio.sleep(self._retry_seconds)
            if self._closed:
                raise _client_is_closed()

    async def _make_room(self) -> None:
        """Return when another connection may be opened; those that rest make way first."""
        if self._room.is_full:
            for line in self._lines.values():
                line.resting.close_idle()
        await self._room.enter()

    def _new(self, line: _Line) -> Connection:
        def ended(connection: Connection) -> None:
            line.resting.lost(connection, self._now())
            self._room.has_changed()

        return Connection(self.tcp_keepalive, self._open, ended, self._arrived)

    def _sweep_later(self) -> None:
        self._sweeping = asyncio.get_running_loop().call_later(_SWEEP_SECONDS, self._sweep)

    def _sweep(self) -> None:
        self._sweeping = None
        now = self._now()
        for line in self._lines.values():
            line.resting.close_idle(now)
        if any(line.resting for line in self._lines.values()):
            self._sweep_later()

    async def aclose(self) -> None:
        """Close every connection; what is under way fails, and so does what comes after. Twice does no harm."""
        self._closed = True
        self._lines.clear()
        if self._loop is not asyncio.get_running_loop():
            return
        if self._sweeping is not None:
            self._sweeping.cancel()
            self._sweeping = None
        for connection in tuple(self._open):
            connection.abort()
        for _ in range(_CLOSING_TURNS):
            if not self._open:
                break
            await asyncio.sleep(0)


def _client_is_closed() -> Broken:
    return Broken(Kind.CLIENT_CLOSED, "the client is closed")


def send_failed(server: str, url: str, broken: Broken, exchange: Exchange) -> SendFailed:
    """Return the failure of an exchange with `server`, with what the exchange says of its delivery."""
    return SendFailed(
        f"{server} at {url}: {broken.kind}: {broken.said}",
        delivery=exchange.delivery,
        exception_type=str(broken.kind),
        status=exchange.status,
    )
