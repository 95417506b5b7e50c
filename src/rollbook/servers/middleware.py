"""Cancels a handler whose client has gone, so that an aborted rollout frees what it held down the chain.

Rules:
* This is the outermost layer and the sole reader of `receive`; it relays the body and then waits for the disconnect.
* A disconnect before the reply is complete cancels the handler, waits for it, and sends nothing.
* A call from inside the process is cancelled by its caller's task, so it passes through.

Source: servers.md §3.6.
"""

import asyncio
import logging
from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

_LOG = logging.getLogger(__name__)
_LOG_EVERY: Final = 100
IN_PROCESS_EXTENSION: Final = "rollbook.in_process"


class _Exchange:
    """One request as the handler sees it: relayed messages in, muted messages out once the client has gone."""

    __slots__ = ("complete", "gone", "inbox", "receive_raw", "send_raw")

    def __init__(self, receive: Receive, send: Send) -> None:
        self.receive_raw = receive
        self.send_raw = send
        self.inbox: asyncio.Queue[Message] = asyncio.Queue()
        self.gone = False
        self.complete = False

    async def watch(self) -> None:
        """Relay what the client sends, and return when it has gone."""
        while True:
            message = await self.receive_raw()
            self.gone = message["type"] == "http.disconnect"
            self.inbox.put_nowait(message)
            if self.gone:
                return

    async def receive(self) -> Message:
        return await self.inbox.get()

    async def send(self, message: Message) -> None:
        if self.gone and not self.complete:
            return
        await self.send_raw(message)
        if message["type"] == "http.response.body" and not message.get("more_body", False):
            self.complete = True


class ClientDisconnectCancellationMiddleware:
    """Cancels the handler of a request whose client disconnects before the reply is complete."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self.cancelled = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http" or IN_PROCESS_EXTENSION in scope.get("extensions", ()):
            await self.app(scope, receive, send)
            return
        exchange = _Exchange(receive, send)
        handler = asyncio.ensure_future(self.app(scope, exchange.receive, exchange.send))
        watch = asyncio.ensure_future(exchange.watch())
        try:
            await asyncio.wait({handler, watch}, return_when=asyncio.FIRST_COMPLETED)
            if not handler.done() and not exchange.complete:
                self._note(scope)
                handler.cancel()
            await asyncio.wait({handler})
        finally:
            watch.cancel()
            if not handler.done():
                handler.cancel()
                await asyncio.wait({handler})
        self._finish(handler, exchange)

    @staticmethod
    def _finish(handler: "asyncio.Future[None]", exchange: _Exchange) -> None:
        """Raise what the handler raised, unless nobody is there to hear it."""
        error = None if handler.cancelled() else handler.exception()
        if exchange.gone:
            return
        if handler.cancelled():
            raise asyncio.CancelledError
        if error is not None:
            raise error

    def _note(self, scope: Scope) -> None:
        self.cancelled += 1
        if self.cancelled % _LOG_EVERY == 1:
            _LOG.info(
                "499 %s %s: client gone, handler cancelled (%d so far)", scope["method"], scope["path"], self.cancelled
            )
