"""What plain routes answer directly is what the framework's layers answer."""

import asyncio
import json
import re
from base64 import b64decode
from typing import Any, ClassVar, NamedTuple

import pytest
from fastapi import Depends, FastAPI, HTTPException, Request, Response
from omegaconf import OmegaConf
from pydantic import BaseModel, ConfigDict, model_validator
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rollbook.config.types import BaseRunServerInstanceConfig, BaseServerConfig
from rollbook.servers.base import SimpleServer
from rollbook.servers.client import ServerClient
from rollbook.servers.correlation import current_rollout_id
from rollbook.servers.direct.direct_way import DirectWay, entrance_of
from rollbook.servers.direct.plain_routes import plain_routes
from rollbook.servers.http.embedded_call import EmbeddedRequest, call_embedded, request_scope


class Asked(BaseModel):
    model_config = ConfigDict(extra="allow")

    city: str
    number: float = 1.5


class Brittle(Asked):
    @model_validator(mode="before")
    @classmethod
    def _needs(cls, row: Any) -> Any:
        return row | {"number": row["number"]}


class Answered(BaseModel):
    city: str
    number: float | None = None


class MoreAnswered(Answered):
    hidden: str = "never sent"


class Other(BaseModel):
    model_config = ConfigDict(extra="allow")

    city: str = "elsewhere"
    number: float = 0.0


class Checked(Answered):
    model_config = ConfigDict(revalidate_instances="always")


class Doubled(Answered):
    @model_validator(mode="after")
    def _doubled(self) -> "Doubled":
        self.number = 2 * (self.number or 0)
        return self


async def plain(body: Asked) -> Answered:
    return MoreAnswered(city=body.city, number=body.number)


async def as_mapping(body: Asked) -> Answered:
    return {"city": body.city, "other": 1}  # type: ignore[return-value]  # what a careless handler does


async def misshapen(body: Asked) -> Answered:
    return {"town": body.city}  # type: ignore[return-value]


async def unchecked(body: Asked) -> Answered:
    return Answered.model_construct(city=body.city, number=body.number)


async def checked(body: Asked) -> Checked:
    return Checked.model_construct(city=None, number=body.number)


async def doubled(body: Asked) -> Doubled:
    return Doubled(city=body.city, number=body.number)


async def either(body: Asked) -> MoreAnswered | Answered | Other:
    return {1.5: Answered, 2.0: MoreAnswered}.get(body.number, Other)(city=body.city)


async def either_doubled(body: Asked) -> Answered | Doubled:
    return (Doubled if body.number == 1.5 else Answered)(city=body.city, number=body.number)


async def untyped(body: Asked) -> Any:
    return {"city": {body.city}, "body": body}


async def with_everything(request: Request, response: Response, body: Asked) -> Answered:
    response.set_cookie("own", "1")
    response.headers["Vary"] = "Accept"
    response.status_code = 201
    request.session["seen"] = request.session.get("seen", 0) + 1
    return Answered(city=f"{body.city} {request.url.path} {current_rollout_id()} {request.session['seen']}")


async def raw(request: Request) -> Response:
    return Response(b"raw:" + await request.body(), 203, {"X-Own": "1"}, "text/plain")


async def cleared(request: Request) -> Response:
    request.session.clear()
    return Response(b"gone")


async def without_content(response: Response) -> None:
    response.status_code = 204


async def refused(body: Asked) -> Answered:
    raise HTTPException(409, f"no {body.city}", {"X-Why": "because"})


async def broken(body: Asked) -> Answered:
    raise ValueError(body.city)


async def brittle(body: Brittle) -> Answered:
    return Answered(city=body.city, number=body.number)


def threaded(body: Asked) -> Answered:
    return Answered(city=body.city)


async def nothing() -> str:
    return "needed"


async def dependent(body: Asked, needed: str = Depends(nothing)) -> Answered:
    return Answered(city=body.city + needed)


HANDLERS = (
    plain,
    as_mapping,
    misshapen,
    unchecked,
    checked,
    doubled,
    either,
    either_doubled,
    untyped,
    with_everything,
    raw,
    cleared,
    without_content,
    refused,
    broken,
    brittle,
    threaded,
    dependent,
)
PLAIN = {f"/{handler.__name__}" for handler in HANDLERS} - {"/threaded", "/dependent"}
OSLO = b'{"city": "Oslo"}'
JSON = {"content-type": "application/json"}
REQUESTS = (
    (b'{"city": "Oslo", "number": 2}', JSON),
    (b'{"city": "Oslo"}', JSON),
    (b'{"city": "Oslo", "number": NaN}', JSON),
    (b'{"city": "\\ud800"}', JSON),
    (b'{"city": "Oslo", "far": 123456789012345678901234567890}', JSON),
    (b'{"city": 5}', JSON),
    (b'{"city": ', JSON),
    (b"null", JSON),
    (b"", JSON),
    (b'{"city": "Oslo"}', {"content-type": "application/problem+json; charset=utf-8"}),
    (b'{"city": "Oslo"}', {"content-type": "text/plain"}),
    (b'{"city": "Oslo"}', {}),
    (b'{"city": "Oslo"}', JSON | {"x-rollout-id": "7-2", "cookie": "AnyServer___it=broken; other=1"}),
)


class AnyServer(SimpleServer):
    """Has every handler of this module on a route."""

    def setup_webserver(self) -> FastAPI:
        app = FastAPI()
        self.setup_session_middleware(app)
        for handler in HANDLERS:
            app.post(f"/{handler.__name__}")(handler)
        return app


def application(*, direct: bool) -> FastAPI:
    config = BaseRunServerInstanceConfig(host="127.0.0.1", port=1, entrypoint="app.py", name="it")
    head = BaseServerConfig(host="127.0.0.1", port=1)
    app = AnyServer(config=config, server_client=ServerClient(head, OmegaConf.create({}))).build_app()
    if not direct:
        app.build_middleware_stack = lambda: FastAPI.build_middleware_stack(app)  # type: ignore[method-assign]
    assert isinstance(app.build_middleware_stack(), DirectWay) is direct
    return app


class Reply(NamedTuple):
    """What a client is told."""

    status: int
    headers: list[tuple[bytes, bytes]]
    body: bytes

    @property
    def session(self) -> str:
        """The session cookie, as a client sends it back."""
        return next(
            found[1] for _, value in self.headers if (found := re.match(r"(AnyServer___it=[^;]+)", value.decode()))
        )

    @property
    def plain(self) -> "Reply":
        """The reply without the random part of the session cookie."""
        hide = re.compile(rb"(AnyServer___it=)[^;]{20,}")
        return self._replace(headers=[(name, hide.sub(rb"\1...", value)) for name, value in self.headers])


async def ask(
    app: FastAPI, path: str, body: bytes = b"", headers: dict[str, str] = JSON, method: str = "POST"
) -> Reply:
    """Send one request to `app`, as a server over a socket would."""
    received: list[Message] = [{"type": "http.request", "body": body[:9], "more_body": True}]
    received.append({"type": "http.request", "body": body[9:], "more_body": False})
    sent: list[Message] = []
    over = asyncio.Event()

    async def receive() -> Message:
        if not received:
            await over.wait()
            return {"type": "http.disconnect"}
        return received.pop(0)

    async def send(message: Message) -> None:
        sent.append(message)
        if message["type"] == "http.response.body" and not message.get("more_body"):
            over.set()

    raw_headers = [(name.encode(), value.encode()) for name, value in headers.items()]
    scope = {"type": "http", "method": method, "path": path, "raw_path": path.encode(), "headers": raw_headers}
    scope |= {"root_path": "", "query_string": b"", "scheme": "http", "server": ("it", 80), "http_version": "1.1"}
    await app(scope, receive, send)
    body = b"".join(message.get("body", b"") for message in sent[1:])
    return Reply(sent[0]["status"], list(sent[0]["headers"]), body)


async def ask_in_process(app: FastAPI, path: str, body: bytes, headers: dict[str, str]) -> Reply:
    """Send one request to `app`, as a server of the same process would."""
    asked = EmbeddedRequest("POST", "http://it", path, headers, body)
    reply = await call_embedded(app, request_scope(asked, "it", 80, {}), asked, set())
    return Reply(reply.status, reply.raw_headers, await reply.read())


def session_id(cookie: str) -> str:
    """Return the id in a session's cookie."""
    return json.loads(b64decode(cookie.partition("=")[2].partition(".")[0]))["session_id"]


def test_routes_with_a_fixed_path_and_a_coroutine_are_plain_and_no_others():
    assert set(plain_routes(application(direct=True))) == PLAIN


@pytest.mark.parametrize("prefix", ["", "/ng-rollout/3-1"])
@pytest.mark.parametrize("handler", HANDLERS)
async def test_the_direct_way_answers_every_request_as_the_layers_do(handler, prefix):
    short, long = application(direct=True), application(direct=False)
    for body, headers in REQUESTS:
        asked = (f"{prefix}/{handler.__name__}", body, headers)
        assert (await ask(short, *asked)).plain == (await ask(long, *asked)).plain, (body, headers)


@pytest.mark.parametrize("prefix", ["", "/ng-rollout/3-1"])
@pytest.mark.parametrize("handler", HANDLERS)
async def test_a_call_of_this_process_is_answered_as_one_over_a_socket(handler, prefix):
    here, there = application(direct=True), application(direct=False)
    for body, headers in REQUESTS:
        path = f"{prefix}/{handler.__name__}"
        assert (await ask_in_process(here, path, body, headers)).plain == (await ask(there, path, body, headers)).plain


async def test_a_session_goes_on_whichever_way_answers():
    short, long = application(direct=True), application(direct=False)
    headers = JSON
    for number, app in enumerate((short, long, short, long), start=1):
        reply = await ask(app, "/with_everything", OSLO, headers)
        assert json.loads(reply.body)["city"] == f"Oslo /with_everything None {number}"
        headers = JSON | {"cookie": reply.session}
    assert (await ask(short, "/cleared", OSLO, headers)) == (await ask(long, "/cleared", OSLO, headers))


async def test_sessions_of_concurrent_calls_are_apart():
    app = application(direct=True)
    opened = [await ask_in_process(app, "/raw", b"", JSON) for _ in range(8)]
    cookies = [reply.session for reply in opened]
    for seen in (1, 2):
        calls = [ask_in_process(app, "/with_everything", OSLO, JSON | {"cookie": cookie}) for cookie in cookies]
        replies = await asyncio.gather(*calls)
        cookies = [reply.session for reply in replies]
        assert [json.loads(reply.body)["city"][-1] for reply in replies] == [str(seen)] * 8
        assert [session_id(cookie) for cookie in cookies] == [session_id(reply.session) for reply in opened]
    assert len({session_id(cookie) for cookie in cookies}) == 8


@pytest.mark.parametrize("method", ["GET", "PUT", "OPTIONS"])
async def test_another_method_is_answered_by_the_layers(method):
    short, long = application(direct=True), application(direct=False)
    assert (await ask(short, "/plain", method=method)).plain == (await ask(long, "/plain", method=method)).plain


class Noting:
    """A middleware of a component's own."""

    seen: ClassVar[list[str]] = []

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.seen.append(scope["type"])
        await self.app(scope, receive, send)


async def test_an_application_with_a_middleware_of_its_own_has_no_direct_way():
    app = application(direct=True)
    app.add_middleware(Noting)
    assert (await ask(app, "/plain", OSLO)).status == 200
    assert Noting.seen == ["http"]


class Around:
    """An application around another one, which writes down what passes it."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self.passed: list[str] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def receiving() -> Message:
            message = await receive()
            self.passed.append(message["type"])
            return {**message, "body": message["body"].replace(b"Oslo", b"Bergen")}

        async def sending(message: Message) -> None:
            self.passed.append(message["type"])
            await send(message)

        await self.app(scope, receiving, sending)


async def test_an_application_around_another_one_sees_all_that_passes_in_a_call_of_this_process():
    around = Around(application(direct=True))
    reply = await ask_in_process(around, "/plain", OSLO, JSON)
    assert json.loads(reply.body)["city"] == "Bergen"
    assert around.passed == ["http.request", "http.response.start", "http.response.body"]


class Calling(FastAPI):
    """A component's own kind of application."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.extra["called"] = True
        await super().__call__(scope, receive, send)


def test_an_application_that_is_called_in_its_own_way_has_no_other_entrance():
    app = Calling()
    app.middleware_stack = app.build_middleware_stack()
    assert entrance_of(app) is app


async def test_a_client_that_goes_within_its_body_is_not_heard():
    messages: list[Message] = [
        {"type": "http.request", "body": json.dumps({"city": "Oslo"}).encode(), "more_body": True},
        {"type": "http.disconnect"},
    ]
    called = []
    app = application(direct=True)
    stack = app.build_middleware_stack()

    async def receive() -> Message:
        return messages.pop(0) if messages else {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        called.append(message)

    scope = {"type": "http", "method": "POST", "path": "/raw", "raw_path": b"/raw", "query_string": b"", "headers": []}
    await stack(scope | {"root_path": "", "app": app, "extensions": {}}, receive, send)
    assert called == []
