"""Serves the plain routes of an application without the framework's layers; everything else goes through them.

Rules:
* It stands in for layers that it knows: with any other middleware on the application it is not there at all.
* A request that is not as expected (no JSON, a body that does not validate) goes the general way, unread as it came.
* What a handler raises is told by the layers that tell it on the general way, and so is what a body's validators raise.
* A call of this process is answered past `send` only where nobody stands between the two.

Source: servers.md §3.2, §3.5, §3.6.
"""

from collections.abc import Awaitable, Mapping
from typing import Any, Final, TypeVar

from fastapi import FastAPI, Request
from fastapi.responses import Response
from msgspec import Struct
from msgspec.structs import replace
from pydantic_core import from_json
from starlette.exceptions import HTTPException
from starlette.middleware.exceptions import ExceptionMiddleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rollbook.servers.correlation import (
    ROLLOUT_ID_HEADER_BYTES,
    RolloutContext,
    RolloutContextMiddleware,
    enter,
    named_context,
    path_params_of,
    within,
)
from rollbook.servers.deadline import DEADLINE_HEADER_BYTES, DeadlineMiddleware
from rollbook.servers.direct.plain_routes import PlainRoute, plain_routes
from rollbook.servers.direct.whole_replies import RawHeaders, Unsent, WholeReply, reply_of, send_reply
from rollbook.servers.errors_replies import ErrorReplies, Raised, raising
from rollbook.servers.half_a_character import SENT
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
_CONTENT_TYPE: Final = b"content-type"
_COOKIE: Final = b"cookie"
_JSON_TYPE: Final = b"application/json"


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
    if type(app).__call__ is not FastAPI.__call__:
        return app
    stack = app.middleware_stack
    within_the_process = stack.served if isinstance(stack, DirectWay) else stack

    def entered(scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        if scope["type"] != "http" or scope.get(_TELEMETRY, app) is not None:
            return app(scope, receive, send)
        scope["app"] = app
        if WHOLE_EXCHANGE in scope and scope["method"] == "POST":
            return within_the_process(scope, receive, send)
        return stack(scope, receive, send)

    return entered


class DirectWay:
    """An application whose plain `routes` are served here, and all others by its `layers`."""

    def __init__(self, app: FastAPI, layers: ASGIApp, routes: Mapping[str, PlainRoute]) -> None:
        self._layers = layers
        self._routes = routes
        self._router = app.router
        self._watched = ClientDisconnectCancellationMiddleware(self.served)
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
            return self.served(scope, receive, send)
        return self._watched(scope, receive, send)

    def served(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """Serve one POST, whose client's going is somebody else's affair."""
        said = dict(scope["headers"])
        context, path = named_context(scope["path"], said.get(ROLLOUT_ID_HEADER_BYTES))
        route = self._routes.get(path)
        if route is None or scope.get("root_path") or len(said) < len(scope["headers"]):
            return self._layers(scope, receive, send)
        asked = _Asked(route, context, path, said)
        exchange = _unwrapped(scope, receive, send)
        if exchange is None:
            return self._received(asked, scope, receive, send)
        given = _validated(route, said.get(_CONTENT_TYPE, b""), exchange.body)
        if given is None:
            return self._layers(scope, receive, send)
        enter(context)
        self._complete(scope, asked)
        return self._within(_Plain(asked, given, exchange.body, exchange), scope, receive, send)

    async def _received(self, asked: "_Asked", scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request of which the body is still to come."""
        body, messages = await _whole_body(receive)
        receive = _Replayed(messages, receive)
        given = None if body is None else _validated(asked.route, asked.said.get(_CONTENT_TYPE, b""), body)
        if body is None or given is None:
            await self._layers(scope, receive, send)
            return
        inner = dict(scope)
        self._complete(inner, asked)
        with within(asked.context):
            await self._within(_Plain(asked, given, body, None), inner, receive, send)

    def _complete(self, scope: Scope, asked: "_Asked") -> None:
        """Put into `scope` what the router puts there."""
        scope["path_params"] = {}
        if asked.path != scope["path"]:
            scope["path"], scope["raw_path"] = asked.path, asked.path.encode()
            scope["path_params"] = path_params_of(asked.context)
        scope["router"], scope["route"], scope["endpoint"] = self._router, asked.route.route, asked.route.call

    def _within(self, plain: "_Plain", scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """Serve a plain request, within the layers from the beginning where it says how much time there is."""
        serve = self._layered if DEADLINE_HEADER_BYTES in plain.asked.said else self._at_once
        return serve(plain, scope, receive, send)

    async def _layered(self, plain: "_Plain", scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request within the layers that tell what goes wrong."""
        scope[_PLAIN], scope[SENT] = plain, plain.body
        try:
            await self._told(scope, receive, send)
        finally:
            del scope[_PLAIN], scope[SENT]  # what it holds may hold `scope`: nothing is left for the collector

    async def _at_once(self, plain: "_Plain", scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request that says no time; the layers are asked only where there is something to tell."""
        raised = Raised()
        reply: WholeReply | ASGIApp = raised.again
        headers: RawHeaders = []
        came = False
        with raised:
            came = self._sessions is not None and self._sessions.opened(scope, plain.asked.said.get(_COOKIE))
            extra = _arguments_added(plain, scope, receive)
            reply = reply_of(plain.asked.route, await plain.asked.route.call(**plain.given), extra)
            headers = self._signed(reply, scope, came=came)
        if isinstance(reply, WholeReply) and raised.error is None:
            if plain.exchange is None or reply.background is not None:
                await send_reply(reply, headers, send)
            else:
                plain.exchange.answer(reply.status, headers, reply.body)
            return
        rest = raised.again if isinstance(reply, WholeReply) else reply
        await self._layered(replace(plain, rest=rest, came=came), scope, receive, send)

    async def _in_session(self, scope: Scope, receive: Receive, send: Send) -> None:
        plain: _Plain = scope[_PLAIN]
        came, rest = plain.came, plain.rest
        if rest is None:
            came = self._sessions is not None and self._sessions.opened(scope, plain.asked.said.get(_COOKIE))
            extra = _arguments_added(plain, scope, receive)
            try:
                reply = reply_of(plain.asked.route, await plain.asked.route.call(**plain.given), extra)
            except self._handled as error:
                rest = raising(error)
            else:
                if isinstance(reply, WholeReply):
                    await send_reply(reply, self._signed(reply, scope, came=came), send)
                    return
                rest = reply
        if self._sessions is not None:
            send = _Signing(scope, send, self._sessions, came=came).send
        await ExceptionMiddleware(rest, self._handlers)(scope, receive, send)

    def _signed(self, reply: "WholeReply | ASGIApp", scope: Scope, *, came: bool) -> RawHeaders:
        """Return the headers of a whole reply, with the session's cookie."""
        if not isinstance(reply, WholeReply):
            return []
        if self._sessions is None:
            return reply.headers
        return self._sessions.closed(reply.headers, scope["session"], came=came)


def _layer(app: FastAPI, kind: type[Layer], inside: ASGIApp) -> Layer | None:
    """Return the layer of this kind that `app` has, around `inside`."""
    made = (added.cls(inside, *added.args, **added.kwargs) for added in app.user_middleware)
    return next((layer for layer in made if isinstance(layer, kind)), None)


class _Asked(Struct, frozen=True):
    """What a request to a plain route says before its body; `said` are its headers."""

    route: PlainRoute
    context: RolloutContext | None
    path: str
    said: Mapping[bytes, bytes]


class _Plain(Struct, frozen=True):
    """A plain route's call, as far as it is known before the handler runs."""

    asked: _Asked
    given: dict[str, Any]
    body: bytes
    exchange: WholeExchange | None
    rest: ASGIApp | None = None
    """What is left to do when the handler has run."""
    came: bool = False
    """Whether the session came with the request."""


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


def _unwrapped(scope: Scope, receive: Receive, send: Send) -> WholeExchange | None:
    """Return the whole exchange that a request is, if both of its ends are the exchange's own."""
    exchange: WholeExchange | None = scope.get(WHOLE_EXCHANGE)
    is_whole = getattr(receive, "__self__", None) is exchange and getattr(send, "__self__", None) is exchange
    return exchange if is_whole else None


async def _whole_body(receive: Receive) -> tuple[bytes | None, list[Message]]:
    """Return a request's body, None when the client went before its end, and the messages that it came in."""
    messages = [await receive()]
    while messages[-1].get("more_body", False):
        messages.append(await receive())
    if messages[-1]["type"] == "http.disconnect":
        return None, messages
    return b"".join([message.get("body", b"") for message in messages]), messages


class _LeftToTheLayers:
    """A block whose errors the layers are to tell: they read the same body, and come upon the same error."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> bool:
        return isinstance(error, Exception)


_LEFT_TO_THE_LAYERS: Final = _LeftToTheLayers()


def _validated(route: PlainRoute, content_type: bytes, body: bytes) -> dict[str, Any] | None:
    """Return the handler's body argument; None when the body is not what the route expects."""
    if route.body is None:
        return {}
    if content_type != _JSON_TYPE and content_type.partition(b";")[0].strip().lower() != _JSON_TYPE:
        return None
    kind = route.body_class
    with _LEFT_TO_THE_LAYERS:
        value = from_json(body)
        if value is None:
            return None
        if kind is not None:
            return {route.body_name: kind.__pydantic_validator__.validate_python(value, from_attributes=True)}
        found, errors = route.body.validate(value, {}, loc=("body",))
        if not errors:
            return {route.body_name: found}
    return None


def _arguments_added(plain: _Plain, scope: Scope, receive: Receive) -> Response | None:
    """Give a handler the other arguments that it takes; return the response that it may write on, if it takes one."""
    route, arguments = plain.asked.route, plain.given
    if route.request_name is not None:
        arguments[route.request_name] = _WholeRequest(scope, receive, plain.body)
    if route.response_name is None:
        return None
    extra = arguments[route.response_name] = Unsent()
    return extra
