"""Serves the plain routes of an application without the framework's layers; everything else goes through them.

Rules:
* It stands in for layers that it knows: with any other middleware on the application it is not there at all.
* A request that is not as expected (no JSON, a body that does not validate) goes the general way, unread as it came.
* What a handler raises is told by the layers that tell it on the general way.

Source: servers.md §3.2, §3.5, §3.6.
"""

from collections.abc import Awaitable, Mapping
from typing import Any, Final, NamedTuple, TypeVar

from fastapi import FastAPI, Request
from fastapi.encoders import jsonable_encoder
from fastapi.exceptions import ResponseValidationError
from fastapi.responses import JSONResponse, Response
from fastapi.utils import is_body_allowed_for_status_code
from pydantic_core import from_json
from starlette.background import BackgroundTask
from starlette.exceptions import HTTPException
from starlette.middleware.exceptions import ExceptionMiddleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rollbook.servers.correlation import RolloutContextMiddleware, context_of, rollout_context
from rollbook.servers.deadline import DeadlineMiddleware
from rollbook.servers.direct.plain_routes import PlainRoute, plain_routes
from rollbook.servers.errors_replies import ErrorReplies
from rollbook.servers.middleware import (
    IN_PROCESS_EXTENSION,
    WHOLE_EXCHANGE,
    ClientDisconnectCancellationMiddleware,
    WholeExchange,
)
from rollbook.servers.sessions import SessionIdMiddleware, SignedSessions

_KNOWN: Final[tuple[object, ...]] = (
    ClientDisconnectCancellationMiddleware,
    ErrorReplies,
    DeadlineMiddleware,
    RolloutContextMiddleware,
)
_WITH_SESSIONS: Final[tuple[object, ...]] = (*_KNOWN, SignedSessions, SessionIdMiddleware)
_TELEMETRY: Final = "fastapi.telemetry"
_PLAIN: Final = "rollbook.plain"
_JSON_HEADER: Final = (b"content-type", b"application/json")
_OK: Final = 200
_NOTHING: Final[Mapping[str, Any]] = {}

RawHeaders = list[tuple[bytes, bytes]]
_WHOLE_REPLIES: Final = frozenset({Response, JSONResponse})

Layer = TypeVar("Layer", DeadlineMiddleware, ErrorReplies, SignedSessions)


def install_direct_way(app: FastAPI) -> None:
    """Have `app` serve its plain routes directly, from its first request on."""
    build = app.build_middleware_stack

    def built() -> ASGIApp:
        layers = build()
        known: tuple[object, ...] = tuple(added.cls for added in app.user_middleware)
        fits = known in {_KNOWN, _WITH_SESSIONS} and not {500, Exception} & app.exception_handlers.keys()
        routes = plain_routes(app) if fits else {}
        return DirectWay(app, layers, routes) if routes else layers

    app.build_middleware_stack = built  # type: ignore[method-assign]  # read once, when the application starts


def entrance_of(app: ASGIApp) -> ASGIApp:
    """Return what serves requests that no provider of telemetry is asked about: `app`, past what only adds to them.

    `app` has been started, so that its layers are built.
    """
    if not isinstance(app, FastAPI) or app.root_path or app.middleware_stack is None:
        return app
    stack = app.middleware_stack

    def entered(scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        if scope["type"] != "http" or scope.get(_TELEMETRY, app) is not None:
            return app(scope, receive, send)
        scope["app"] = app
        return stack(scope, receive, send)

    return entered


class DirectWay:
    """An application whose plain `routes` are served here, and all others by its `layers`."""

    def __init__(self, app: FastAPI, layers: ASGIApp, routes: Mapping[str, PlainRoute]) -> None:
        self._layers = layers
        self._routes = routes
        self._router = app.router
        self._watched = ClientDisconnectCancellationMiddleware(self._served)
        self._sessions = _layer(app, SignedSessions, layers)
        self._told = _layer(app, ErrorReplies, _layer(app, DeadlineMiddleware, self._in_session) or layers) or layers
        self._handlers = app.exception_handlers
        classes = (key for key in app.exception_handlers if isinstance(key, type))
        self._handled: tuple[type[Exception], ...] = (HTTPException, *classes)

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """Serve one request."""
        if scope["type"] != "http" or scope["method"] != "POST" or scope.get(_TELEMETRY) is not None:
            return self._layers(scope, receive, send)
        if IN_PROCESS_EXTENSION in scope.get("extensions", ()):
            return self._served(scope, receive, send)
        return self._watched(scope, receive, send)

    async def _served(self, scope: Scope, receive: Receive, send: Send) -> None:
        context, path = context_of(scope)
        route = self._routes.get(path)
        if route is None or scope.get("root_path"):
            await self._layers(scope, receive, send)
            return
        exchange: WholeExchange | None = scope.get(WHOLE_EXCHANGE)
        body: bytes | None
        if exchange is None:
            body, messages = await _whole_body(receive)
            receive = _Replayed(messages, receive)
        else:
            body = exchange.body
        given = None if body is None else _validated(route, scope, body)
        if body is None or given is None:
            await self._layers(scope, receive, send)
            return
        inner = dict(scope)
        if path != scope["path"]:
            inner["path"], inner["raw_path"] = path, path.encode()
        inner["router"], inner["route"], inner["endpoint"] = self._router, route.route, route.call
        inner["path_params"] = {}
        inner[_PLAIN] = _Plain(route, given, body, exchange)
        try:
            if context is None:
                await self._told(inner, receive, send)
            else:
                with rollout_context(context.rollout_id, training_capture=context.training_capture):
                    await self._told(inner, receive, send)
        finally:
            del inner[_PLAIN]  # what it holds may hold `inner`: nothing is left for the collector

    async def _in_session(self, scope: Scope, receive: Receive, send: Send) -> None:
        sessions = self._sessions
        came = sessions is not None and sessions.opened(scope)
        plain: _Plain = scope[_PLAIN]
        reply: _Whole | ASGIApp
        try:
            reply = await _answer(plain, scope, receive)
        except self._handled as error:
            reply = _raising(error)
        if isinstance(reply, _Whole):
            headers = reply.headers
            if sessions is not None:
                headers = sessions.closed(headers, scope["session"], came=came)
            await _sent(reply, headers, plain.exchange, send)
            return
        if sessions is not None:
            send = _Signing(scope, send, sessions, came=came).send
        await ExceptionMiddleware(reply, self._handlers)(scope, receive, send)


class _Whole(NamedTuple):
    """A reply that is whole, and what is to be done after it."""

    status: int
    headers: RawHeaders
    body: bytes
    background: BackgroundTask | None = None


async def _sent(reply: _Whole, headers: RawHeaders, exchange: WholeExchange | None, send: Send) -> None:
    """Send a reply; one without work to be done after it goes to a caller of this process at once."""
    if exchange is not None and reply.background is None:
        exchange.answer(reply.status, headers, reply.body)
        return
    await send({"type": "http.response.start", "status": reply.status, "headers": headers})
    await send({"type": "http.response.body", "body": reply.body})
    if reply.background is not None:
        await reply.background()


def _layer(app: FastAPI, kind: type[Layer], inside: ASGIApp) -> Layer | None:
    """Return the layer of this kind that `app` has, around `inside`."""
    made = (added.cls(inside, *added.args, **added.kwargs) for added in app.user_middleware)
    return next((layer for layer in made if isinstance(layer, kind)), None)


class _Plain(NamedTuple):
    """A plain route's call, as far as it is known before the handler runs."""

    route: PlainRoute
    given: Mapping[str, Any]
    body: bytes
    exchange: WholeExchange | None


class _Signing:
    """The sending half of an exchange: puts the session's cookie on the reply."""

    __slots__ = ("_begun", "_came", "_scope", "_send", "_sessions")

    def __init__(self, scope: Scope, send: Send, sessions: SignedSessions, *, came: bool) -> None:
        self._scope, self._send, self._sessions = scope, send, sessions
        self._came, self._begun = came, False

    async def send(self, message: Message) -> None:
        if not self._begun:
            self._begun = True
            headers = self._sessions.closed(message.get("headers", ()), self._scope["session"], came=self._came)
            message = {**message, "headers": headers}
        await self._send(message)


class _Replayed:
    """A request's messages once more, and then those that are still to come."""

    __slots__ = ("_left", "_receive")

    def __init__(self, messages: list[Message], receive: Receive) -> None:
        self._left, self._receive = messages, receive

    async def __call__(self) -> Message:
        return self._left.pop(0) if self._left else await self._receive()


class _WholeRequest(Request):
    """A request whose body was read."""

    def __init__(self, scope: Scope, receive: Receive, body: bytes) -> None:
        super().__init__(scope, receive)
        self._whole = body

    async def body(self) -> bytes:
        return self._whole


async def _whole_body(receive: Receive) -> tuple[bytes | None, list[Message]]:
    """Return a request's body, None when the client went before its end, and the messages that it came in."""
    messages = [await receive()]
    while messages[-1].get("more_body", False):
        messages.append(await receive())
    if messages[-1]["type"] == "http.disconnect":
        return None, messages
    return b"".join([message.get("body", b"") for message in messages]), messages


def _validated(route: PlainRoute, scope: Scope, body: bytes) -> Mapping[str, Any] | None:
    """Return the handler's body argument; None when the body is not what the route expects."""
    if route.body is None:
        return _NOTHING
    if not _says_json(scope):
        return None
    try:
        value = from_json(body)
    except ValueError:
        return None
    if value is None:
        return None
    found, errors = route.body.validate(value, {}, loc=("body",))
    return None if errors else {route.body_name: found}


def _says_json(scope: Scope) -> bool:
    said = [value for name, value in scope["headers"] if name == b"content-type"]
    return len(said) == 1 and said[0].partition(b";")[0].strip().lower() == b"application/json"


def _raising(error: Exception) -> ASGIApp:
    """Return an application that raises what a handler raised."""

    async def raising(*_: object) -> None:
        raise error

    return raising


async def _answer(plain: _Plain, scope: Scope, receive: Receive) -> "_Whole | Response":
    """Call the handler of a plain route, and return the reply."""
    route, arguments = plain.route, dict(plain.given)
    extra: Response | None = None
    if route.request_name is not None:
        arguments[route.request_name] = _WholeRequest(scope, receive, plain.body)
    if route.response_name is not None:
        extra = arguments[route.response_name] = _Unsent()
    answer = await route.call(**arguments)
    if not isinstance(answer, Response):
        return _reply(route, answer, extra)
    return _whole(answer) if type(answer) in _WHOLE_REPLIES else answer


class _Unsent(Response):
    """What a handler may write on, before anything is known of the reply."""

    def __init__(self) -> None:
        self.status_code = None  # type: ignore[assignment]  # nobody has set one yet
        self.background = None
        self.body = b""
        self.raw_headers = []


def _whole(reply: Response) -> _Whole:
    return _Whole(reply.status_code, reply.raw_headers, bytes(reply.body), reply.background)


def _reply(route: PlainRoute, answer: object, extra: Response | None) -> _Whole:
    """Return the reply for what a handler returned; `extra` is the response that it may have written on."""
    if route.reply is None:
        body = bytes(JSONResponse(jsonable_encoder(answer)).body)
    else:
        value, errors = route.reply.validate(answer, {}, loc=("response",))
        if errors:
            raise ResponseValidationError(errors=errors, body=answer)
        body = route.reply.serialize_json(value)
    if extra is None or extra.status_code is None:
        headers = [(b"content-length", b"%d" % len(body)), _JSON_HEADER]
        return _Whole(_OK, headers if extra is None else headers + extra.raw_headers, body)
    reply = Response(body, extra.status_code, media_type="application/json")
    if not is_body_allowed_for_status_code(extra.status_code):
        reply.body = b""
    reply.raw_headers += extra.raw_headers
    return _whole(reply)
