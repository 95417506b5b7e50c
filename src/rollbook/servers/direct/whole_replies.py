"""What a plain handler's answer comes to: a reply that is whole, as the framework writes it.

Rules:
* A model's own instance is written as it is; anything else is looked at as FastAPI looks at it.
* What a handler wrote on the response that it was given goes on the reply.

Source: servers.md §3.2.
"""

from typing import Final

from fastapi.encoders import jsonable_encoder
from fastapi.exceptions import ResponseValidationError
from fastapi.responses import JSONResponse, Response
from fastapi.utils import is_body_allowed_for_status_code
from msgspec import Struct
from starlette.background import BackgroundTask
from starlette.types import Send

from rollbook.servers.direct.plain_routes import Field, PlainRoute

RawHeaders = list[tuple[bytes, bytes]]
_WHOLE_REPLIES: Final = frozenset({Response, JSONResponse})
_JSON_HEADER: Final = (b"content-type", b"application/json")
_OK: Final = 200


class WholeReply(Struct, frozen=True):
    """A reply that is whole, and what is to be done after it."""

    status: int
    headers: RawHeaders
    body: bytes
    background: BackgroundTask | None = None


async def send_reply(reply: WholeReply, headers: RawHeaders, send: Send) -> None:
    """Send a reply, and do what is to be done after it."""
    await send({"type": "http.response.start", "status": reply.status, "headers": headers})
    await send({"type": "http.response.body", "body": reply.body})
    if reply.background is not None:
        await reply.background()


class Unsent(Response):
    """What a handler may write on, before anything is known of the reply."""

    def __init__(self) -> None:
        self.status_code = None  # type: ignore[assignment]  # nobody has set one yet
        self.background = None
        self.body = b""
        self.raw_headers = []


def _whole(reply: Response) -> WholeReply:
    return WholeReply(reply.status_code, reply.raw_headers, bytes(reply.body), reply.background)


def reply_of(route: PlainRoute, answer: object, extra: Response | None) -> "WholeReply | Response":
    """Return the reply for what a handler returned; `extra` is the response that it may have written on."""
    if isinstance(answer, Response):
        return _whole(answer) if type(answer) in _WHOLE_REPLIES else answer
    writer = route.reply_writers.get(type(answer))
    if writer is not None:
        body = writer.to_json(answer, by_alias=True)
    elif route.reply is None:
        body = bytes(JSONResponse(jsonable_encoder(answer)).body)
    else:
        body = _reply_body(route.reply, answer)
    if extra is None or extra.status_code is None:
        headers = [(b"content-length", b"%d" % len(body)), _JSON_HEADER]
        return WholeReply(_OK, headers if extra is None else headers + extra.raw_headers, body)
    reply = Response(body, extra.status_code, media_type="application/json")
    if not is_body_allowed_for_status_code(extra.status_code):
        reply.body = b""
    reply.raw_headers += extra.raw_headers
    return _whole(reply)


def _reply_body(field: Field, answer: object) -> bytes:
    """Return as JSON what a handler returned, which is to be a value of the route's reply."""
    value, errors = field.validate(answer, {}, loc=("response",))
    if errors:
        raise ResponseValidationError(errors=errors, body=answer)
    return field.serialize_json(value)
