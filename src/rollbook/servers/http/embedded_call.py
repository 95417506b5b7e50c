"""One HTTP request, answered by an ASGI application of this process: no socket, no copy of the body.

Rules:
* The handler runs in its own task and context, as it does behind a socket.
* Cancelling the caller cancels the handler and waits for nobody, as closing a connection does.
* A limit on silence is one on the time between two pieces of the reply, as between two reads of a socket.
* A reply that is not read on ends the call: its handler is cancelled, and what it still sends is dropped.
* The caller has its reply when the last byte is sent; what the application does afterwards is its own affair.

Source: servers.md §3.6, §4.2; collection.md §3.3.
"""

import asyncio
import contextvars
import logging
import sys
from collections.abc import Awaitable, Callable, Mapping, MutableSet
from functools import lru_cache
from types import MappingProxyType
from typing import Final, Protocol
from urllib.parse import unquote

from aiohttp import ClientPayloadError, SocketTimeoutError
from msgspec import Struct
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rollbook.servers.http.embedded_response import EmbeddedResponse, RawHeaders
from rollbook.servers.middleware import IN_PROCESS_EXTENSION, WHOLE_EXCHANGE

_LOG = logging.getLogger(__name__)
_ASGI: Final = {"version": "3.0", "spec_version": "2.4"}
_TRACING_PACKAGE: Final = "opentelemetry.sdk"
_UNTRACED: Final = {"fastapi.telemetry": None}
"""Spares FastAPI the question, at every request, whether a provider has been set: none is without the package."""


def untraced(app: ASGIApp) -> ASGIApp:
    """Return `app`, whose requests are spared that question."""

    def served(scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        if scope["type"] == "http" and _TRACING_PACKAGE not in sys.modules:
            scope.update(_UNTRACED)
        return app(scope, receive, send)

    return served


_EXTENSIONS: Final[dict[str, dict[object, object]]] = {IN_PROCESS_EXTENSION: {}}
_BROKEN: Final = (500, [(b"content-type", b"text/plain; charset=utf-8")], b"Internal Server Error")


RawPairs = tuple[tuple[bytes, bytes], ...]


class EmbeddedRequest(Struct, frozen=True):
    """What one call says. `target` is path and query as they stand in the URL; header names are in lower case.

    `raw` are the headers as they are sent, where the caller knows them already.
    """

    method: str
    base_url: str
    target: str
    headers: Mapping[str, str] = MappingProxyType({})
    body: bytes = b""
    raw: RawPairs | None = None

    @property
    def url(self) -> str:
        """The address that is called."""
        return self.base_url + self.target


class Watch(Protocol):
    """Is told of a reply that comes in pieces; one that is given whole at once is its caller's to look at."""

    def begins(self, status: int, headers: RawHeaders) -> Exception | None:
        """Take note that the reply's head was sent; return why its body is not read, None if it is."""
        ...

    def refusal(self, size: int) -> Exception | None:
        """Return why a body of which `size` bytes are here is not read on; None if it is."""
        ...


class _Exchange:
    """The two ends of one call: what the application receives, and what it sends.

    The application runs in it as a block, in its own `task`.
    """

    __slots__ = ("body", "chunks", "given", "headers", "heard", "reply", "running", "size", "status", "task", "watch")

    def __init__(
        self,
        body: bytes,
        reply: "asyncio.Future[tuple[int, RawHeaders, bytes]]",
        running: MutableSet["asyncio.Task[None]"],
        watch: Watch | None,
    ) -> None:
        self.body = body
        self.running = running
        self.task: asyncio.Task[None] | None = None
        self.given = False
        self.status = 0
        self.headers: RawHeaders = []
        self.chunks: list[bytes] = []
        self.size = 0
        self.watch = watch
        self.reply = reply
        self.heard: Callable[[], None] | None = None

    def answer(self, status: int, headers: RawHeaders, body: bytes) -> None:
        """Give the caller a whole reply at once."""
        if self.reply.done():
            return
        if self.heard is not None:
            self.heard()
        self.status = status
        self.reply.set_result((status, headers, body))

    async def receive(self) -> Message:
        if self.given:
            await asyncio.get_running_loop().create_future()
        self.given = True
        return {"type": "http.request", "body": self.body, "more_body": False}

    async def send(self, message: Message) -> None:
        if not self.reply.done():
            self._take(message)
        elif message.get("more_body", False):
            await asyncio.sleep(0)

    def _take(self, message: Message) -> None:
        if self.heard is not None:
            self.heard()
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.headers = list(message.get("headers", ()))
            if self.watch is not None:
                self._refuse(self.watch.begins(self.status, self.headers))
        elif message["type"] == "http.response.body":
            self._gather(message.get("body", b""))
            if not message.get("more_body", False) and not self.reply.done():
                self.reply.set_result((self.status, self.headers, b"".join(self.chunks)))

    def _gather(self, piece: bytes) -> None:
        self.chunks.append(piece)
        self.size += len(piece)
        if self.watch is not None:
            self._refuse(self.watch.refusal(self.size))

    def _refuse(self, refusal: Exception | None) -> None:
        if refusal is None:
            return
        self.chunks.clear()
        self.reply.set_exception(refusal)
        self.reply.exception()
        if self.task is not None:
            self.task.cancel()

    async def reply_within(self, silence: float) -> tuple[int, RawHeaders, bytes]:
        """Return the whole reply, of which a piece has to come every `silence` seconds."""
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(silence) as limit:
                self.heard = lambda: limit.reschedule(loop.time() + silence)
                return await self.reply
        except TimeoutError as error:
            raise SocketTimeoutError("Timeout on reading data from socket") from error

    def runs_in(self, task: "asyncio.Task[None]") -> None:
        """Have `task` settle the call, also where it is cancelled before its first step and never enters the block."""
        self.task = task
        self.running.add(task)
        task.add_done_callback(self.end)

    def end(self, task: "asyncio.Task[None] | None") -> None:
        """Count the application out, and settle a call of which it ended without a whole reply."""
        if task is not None:
            self.running.discard(task)
        if not self.reply.done():
            self._settle()

    def __enter__(self) -> None:
        if self.task is not None:
            self.task.remove_done_callback(self.end)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> bool:
        """End the call, unless the application is thrown away unfinished: then its caller is, too."""
        if isinstance(error, GeneratorExit) and asyncio.current_task(self.reply.get_loop()) is not self.task:
            return False
        self.end(self.task)
        if error is None or isinstance(error, asyncio.CancelledError):
            return False
        _LOG.error("an application of this process raised outside of its reply", exc_info=error)
        return not isinstance(error, (KeyboardInterrupt, SystemExit))

    def _settle(self) -> None:
        if self.status:
            self.reply.set_exception(ClientPayloadError("the server ended its reply before it was whole"))
            self.reply.exception()
        else:
            self.reply.set_result(_BROKEN)


def request_scope(request: EmbeddedRequest, host: str, port: int, state: Mapping[str, object]) -> Scope:
    """Return the ASGI scope of `request`, addressed to `host:port`."""
    headers = [*(raw_headers(request.headers) if request.raw is None else request.raw), _host(host, port)]
    if request.body or request.method not in {"GET", "HEAD"}:
        headers.append((b"content-length", b"%d" % len(request.body)))
    scope = _scope_without_headers(request.method, request.target, host, port).copy()
    scope["headers"] = headers
    scope["state"] = dict(state)
    if _TRACING_PACKAGE not in sys.modules:
        scope |= _UNTRACED
    return scope


def raw_headers(headers: Mapping[str, str]) -> RawPairs:
    """Return headers as they are sent."""
    return tuple([(_name(name), value.encode()) for name, value in headers.items()])


@lru_cache(maxsize=256)
def _scope_without_headers(method: str, target: str, host: str, port: int) -> dict[str, object]:
    """Return what is the same in the scopes of all requests to one target, for copying."""
    path, _, query = target.partition("?")
    return {
        "type": "http",
        "asgi": _ASGI,
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": unquote(path),
        "raw_path": path.encode("latin-1", "replace"),
        "query_string": query.encode("latin-1", "replace"),
        "root_path": "",
        "client": ("127.0.0.1", 0),
        "server": (host, port),
        "extensions": _EXTENSIONS,
    }


@lru_cache(maxsize=256)
def _name(name: str) -> bytes:
    return name.encode("latin-1")


@lru_cache(maxsize=256)
def _host(host: str, port: int) -> tuple[bytes, bytes]:
    return b"host", f"{host}:{port}".encode("latin-1")


async def call_embedded(
    app: ASGIApp,
    scope: Scope,
    request: EmbeddedRequest,
    running: MutableSet["asyncio.Task[None]"],
    silence: float | None = None,
    *,
    watch: Watch | None = None,
) -> EmbeddedResponse:
    """Return the reply of `app` to `request`.

    `running` holds the handler's task for as long as it runs; `silence` is in seconds; what `watch` refuses is raised.

    Raises:
        ClientPayloadError: the application began a reply and did not end it.
        SocketTimeoutError: it was silent for longer than `silence`.

    """
    loop = asyncio.get_running_loop()
    exchange = _Exchange(request.body, loop.create_future(), running, watch)
    scope[WHOLE_EXCHANGE] = exchange
    task: asyncio.Task[None] = loop.create_task(_run(app, scope, exchange), context=contextvars.Context())
    exchange.runs_in(task)
    try:
        status, headers, body = await (exchange.reply if silence is None else exchange.reply_within(silence))
    except (asyncio.CancelledError, SocketTimeoutError):
        task.cancel()
        raise
    return EmbeddedResponse(request, status, headers, body)


async def _run(app: ASGIApp, scope: Scope, exchange: _Exchange) -> None:
    with exchange:
        await app(scope, exchange.receive, exchange.send)
