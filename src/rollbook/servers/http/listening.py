"""An ASGI application behind a listening socket, served by uvicorn inside a loop that somebody else runs.

Rules:
* Signals are the program's: serving here installs no handler for them.
* The socket is bound by the caller, so a taken port is known before anything starts.
* A whole reply is one write: its client wakes up once.

Source: servers.md §3.2.
"""

import asyncio
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, cast

import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from rollbook.servers.http.socket_options import tune_socket
from rollbook.servers.middleware import CLIENT_GONE

KEEP_ALIVE_SECONDS: Final = 30
GRACEFUL_SHUTDOWN_SECONDS: Final = 0.5
_HEAD: Final = b"HTTP/1.1 "
_HEAD_BYTES: Final = len(_HEAD)
_MOST_JOINED: Final = 65_536
"""To copy more than this costs more than a write."""


class OnePiece:
    """A transport that sends the head of a reply together with what follows at once: one write where there were two.

    A head that nothing follows goes out when the loop comes around. All else is the transport's own.
    """

    __slots__ = ("_head", "_loop", "_transport")

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._head = b""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Send `data`; the head of a reply waits for the end of this step."""
        head = self._head
        if not head and data[:_HEAD_BYTES] == _HEAD:
            self._head = data
            self._loop.call_soon(self.flush)
            return
        self._head = b""
        if head and len(data) > _MOST_JOINED:
            self._transport.write(head)
            self._transport.write(data)
        else:
            self._transport.write(b"".join((head, data)) if head else data)

    def flush(self) -> None:
        """Send a head that waits."""
        head, self._head = self._head, b""
        if head and not self._transport.is_closing():
            self._transport.write(head)

    def close(self) -> None:
        """Close when everything is sent."""
        self.flush()
        self._transport.close()

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        """Have another protocol read."""
        self.flush()
        self._transport.set_protocol(protocol)


class KeepAliveProtocol(HttpToolsProtocol):
    """HTTP/1.1 over connections that the kernel probes while they are idle, and which tell when a client has gone."""

    _gone: Callable[[], None] | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # narrower, as in uvicorn
        """Set the socket's options when a client connects."""
        sock = transport.get_extra_info("socket")
        if sock is not None and sock.family in {socket.AF_INET, socket.AF_INET6}:
            tune_socket(sock)
        super().connection_made(cast("asyncio.Transport", OnePiece(transport, self.loop)))

    def on_message_begin(self) -> None:
        """Offer the request that begins to tell when its client has gone."""
        super().on_message_begin()
        cast("Scope", self.scope)["extensions"] = {CLIENT_GONE: self._when_gone}

    def _when_gone(self, call: Callable[[], None] | None) -> None:
        """Call this when the client goes; a connection serves one request at a time."""
        self._gone = call

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell the request that is served, if any."""
        super().connection_lost(exc)
        if self._gone is not None:
            self._gone()


class _QuietServer(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class Listener:
    """Serves `app` on a bound socket until it is closed. `state` is what the application's lifespan left behind."""

    def __init__(self, app: ASGIApp, bound: socket.socket, state: Mapping[str, object] | None = None) -> None:
        self.bound = bound
        self._app = app
        self._state = state or {}
        self._task: asyncio.Task[None] | None = None
        config = uvicorn.Config(
            self._with_state,
            interface="asgi3",
            lifespan="off",
            http=KeepAliveProtocol,
            ws="none",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            timeout_keep_alive=KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=GRACEFUL_SHUTDOWN_SECONDS,  # type: ignore[arg-type]  # any number of seconds
        )
        self._server = _QuietServer(config)

    @property
    def port(self) -> int:
        """The port in use."""
        return int(self.bound.getsockname()[1])

    def start(self) -> None:
        """Serve from now on, in the running loop; a listener that was closed stays closed."""
        if self._task is None and not self._server.should_exit:
            self._task = asyncio.get_running_loop().create_task(self._server.serve([self.bound]))

    async def close(self) -> None:
        """Stop serving and close the socket."""
        self._server.should_exit = True
        if self._task is not None:
            await asyncio.wait({self._task})
        self.bound.close()

    async def _with_state(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._state:
            scope["state"] = {**scope.get("state", {}), **self._state}
        await self._app(scope, receive, send)
