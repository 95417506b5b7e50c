"""Cancels a handler whose client has gone, so that an aborted rollout frees what it held down the chain.

Rules:
* A server that tells when a client goes (`CLIENT_GONE`) is asked to. Of any other this outermost layer is the sole
  reader of `receive`; it relays the body and then waits for the disconnect.
* A disconnect before the reply is complete cancels the handler, waits for it, and sends nothing.
* A call from inside the process is cancelled by its caller's task, so it passes through.

Source: servers.md §3.6.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Final, Protocol

from starlette.types import ASGIApp, Message, Receive, Scope, Send

_LOG = logging.getLogger(__name__)
_LOG_EVERY: Final = 100
IN_PROCESS_EXTENSION: Final = "rollbook.in_process"
CLIENT_GONE: Final = "rollbook.client_gone"
"""The extension of a scope that takes what is to be called when the client has gone; None takes it back."""
WHOLE_EXCHANGE: Final = "rollbook.whole_exchange"


class WholeExchange(Protocol):
    """A call from inside the process: its whole request is there, and a whole reply may be given at once.

    A request of which `body` was read here is not received again, and after `answer` nothing is sent.
    """

    @property
    def body(self) -> bytes:
        """The request's body."""
        ...

    def answer(self, status: int, headers: list[tuple[bytes, bytes]], body: bytes) -> None:
        """Reply."""
        ...


class _Exchange:
    """One request as the handler sees it: relayed messages in, muted messages out once the client has gone.

    As a context it ends quietly when the client has gone, whatever the handler raised.
    """

    __slots__ = ("_handler", "_send", "complete", "gone", "on_cancel")

    def __init__(self, send: Send, on_cancel: Callable[[], None]) -> None:
        self._send = send
        self._handler = asyncio.current_task()
        self.on_cancel = on_cancel
        self.gone = False
        self.complete = False

    async def relay(self, receive: Receive, inbox: "asyncio.Queue[Message]") -> None:
        """Relay what the client sends until it has gone."""
        left = False
        while not left:
            message = await receive()
            left = message["type"] == "http.disconnect"
            self.gone = left
            inbox.put_nowait(message)
        self.leave()

    def leave(self) -> None:
        """Cancel the handler of a client that has gone before it has its reply."""
        self.gone = True
        if not self.complete and self._handler is not None:
            self.on_cancel()
            self._handler.cancel()

    async def send(self, message: Message) -> None:
        if self.gone and not self.complete:
            return
        await self._send(message)
        if message["type"] == "http.response.body" and not message.get("more_body", False):
            self.complete = True

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> bool:
        """Tell whether nobody is there to hear of `error`, and nobody else cancels the request."""
        if not self.gone or self.complete:
            return self.gone and kind is not asyncio.CancelledError
        return self._handler is None or self._handler.uncancel() == 0


class ClientDisconnectCancellationMiddleware:
    """Cancels the handler of a request whose client disconnects before the reply is complete."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self.cancelled = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        extensions = scope.get("extensions") or {}
        if scope["type"] != "http" or IN_PROCESS_EXTENSION in extensions:
            await self.app(scope, receive, send)
            return
        exchange = _Exchange(send, lambda: self._note(scope))
        tell = extensions.get(CLIENT_GONE)
        if tell is None:
            await self._relayed(scope, receive, exchange)
            return
        tell(exchange.leave)
        try:
            with exchange:
                await self.app(scope, receive, exchange.send)
        finally:
            tell(None)

    async def _relayed(self, scope: Scope, receive: Receive, exchange: _Exchange) -> None:
        inbox: asyncio.Queue[Message] = asyncio.Queue()
        watch = asyncio.ensure_future(exchange.relay(receive, inbox))
        try:
            with exchange:
                await self.app(scope, inbox.get, exchange.send)
        finally:
            watch.cancel()

    def _note(self, scope: Scope) -> None:
        self.cancelled += 1
        if self.cancelled % _LOG_EVERY == 1:
            _LOG.info(
                "499 %s %s: client gone, handler cancelled (%d so far)", scope["method"], scope["path"], self.cancelled
            )
