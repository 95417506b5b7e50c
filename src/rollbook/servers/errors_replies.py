"""What a server answers when a handler raises: the bodies that the field's clients read.

Rules:
* A failure is status 500 with a bare JSON string, and a header that says which failure led to it.
* The body of an inner server's error is put into the text as Python bytes, one level per hop; a long one is cut.
* A reply that cannot hold half of a character which was sent is status 422: who sent it can mend it.
* Once a reply has begun nothing can be said any more, and the error goes on to the server.
* Every handler error ends here: a server outlives what its environment raises.
* An error is one line in the log, bounded; its traceback is logged for DEBUG alone.

Source: servers.md §3.5; collection.md §3.8.
"""

import asyncio
import logging
from typing import Final

import orjson
from aiohttp import ClientResponseError
from fastapi import FastAPI, Request
from fastapi.exception_handlers import request_validation_exception_handler
from fastapi.exceptions import RequestValidationError
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rollbook.config.secrets import masked_urls
from rollbook.records.failure_report import FAILURE_REPORT_HEADER, Boundary, header_of
from rollbook.servers.error_report import boundary_of, report_of
from rollbook.servers.half_a_character import SENT, Sent
from rollbook.servers.http.inner_error import capped_body
from rollbook.servers.http.redaction import redacted_url

_LOG = logging.getLogger(__name__)
_DUMP_CHARS: Final = 4096
_DUMP_ERRORS: Final = 20
_INNER_CHARS: Final = 1024
_ERROR_CHARS: Final = 1024
_HALF_A_CHARACTER: Final = orjson.dumps(
    {
        "detail": "the text has half of a character in it (a lone surrogate, \\ud800 to \\udfff), for which UTF-8 has "
        "no bytes; send the whole character, or U+FFFD in its place"
    }
)


def reply_text(error: BaseException, session_key: str) -> str:
    """Return the JSON string that a client of `session_key` is told about `error`."""
    inner = inner_body(error)
    if inner is not None:
        return f"Hit an exception in {session_key} calling an inner server: {inner!r}"
    if isinstance(error, asyncio.CancelledError):
        return "Request was cancelled"
    return repr(error) if isinstance(error, Exception) else "An unknown error occurred"


def inner_body(error: BaseException) -> bytes | None:
    """Return the body of an inner server's error, as `raise_for_status` attached it, or None for any other error."""
    content = getattr(error, "response_content", None) if isinstance(error, ClientResponseError) else None
    return capped_body(content) if isinstance(content, bytes) else None


class ErrorReplies:
    """Turns whatever a handler raises into status 500 and a JSON string."""

    def __init__(self, app: ASGIApp, session_key: str, boundary: Boundary = "harness") -> None:
        self.app = app
        self.session_key = session_key
        self.boundary = boundary

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request; errors raised after the reply began pass through."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        begun = False
        sent = Sent(receive, scope.get(SENT))

        async def noting(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            await self.app(scope, sent.receive, noting)
        except (KeyboardInterrupt, GeneratorExit):
            raise
        except BaseException as error:
            if begun:
                raise
            self._log(error, scope)
            if sent.is_at_fault(error):
                await Response(_HALF_A_CHARACTER, 422, media_type="application/json")(scope, receive, send)
                return
            body = orjson.dumps(_encodable(reply_text(error, self.session_key)))
            report = report_of(error, self.boundary)
            headers = {FAILURE_REPORT_HEADER: header_of(report)} if report is not None else None
            await Response(body, 500, headers, media_type="application/json")(scope, receive, send)

    def _log(self, error: BaseException, scope: Scope) -> None:
        inner = inner_body(error)
        if inner is not None and isinstance(error, ClientResponseError):
            _LOG.warning(
                "[upstream_request_failed] server=%s method=%s url=%s status=%s body=%r",
                self.session_key,
                error.request_info.method,
                redacted_url(str(error.request_info.real_url)),
                error.status,
                inner[:_INNER_CHARS],
            )
        elif not isinstance(error, asyncio.CancelledError):
            told = (self.session_key, scope["method"], scope["path"])
            _LOG.error("%s: %s %s raised %s", *told, one_line(error))
            _LOG.debug("%s: %s %s raised, with its traceback:", *told, exc_info=error)


class Raised:
    """Holds what its block raises, for `again` to raise it where it is told; what ends a program passes through."""

    __slots__ = ("error",)

    def __init__(self) -> None:
        self.error: BaseException | None = None

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> bool:
        if isinstance(error, (KeyboardInterrupt, GeneratorExit)):
            return False
        self.error = error
        return error is not None

    async def again(self, *_: object) -> None:
        """Raise it, as an application."""
        error, self.error = self.error, None
        if error is not None:
            raise error


def raising(error: BaseException) -> ASGIApp:
    """Return an application that raises `error`."""
    raised = Raised()
    raised.error = error
    return raised.again


def one_line(error: BaseException) -> str:
    """Return type and text of `error` on one line, cut where it is long."""
    text = " ".join(masked_urls(str(error)).split())
    shown = f"{text[:_ERROR_CHARS]} …" if len(text) > _ERROR_CHARS else text
    return f"{type(error).__name__}: {shown}" if shown else type(error).__name__


def _encodable(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()


async def logged_validation_error(request: Request, error: Exception) -> Response:
    """Answer 422 as FastAPI does, after logging a bounded dump of what was wrong."""
    if not isinstance(error, RequestValidationError):
        raise error
    dump = repr(error.errors()[:_DUMP_ERRORS])[:_DUMP_CHARS]
    _LOG.warning("%s %s does not validate: %s", request.method, request.url.path, dump)
    return await request_validation_exception_handler(request, error)


def install_error_replies(app: FastAPI, session_key: str) -> None:
    """Put the error replies around `app`, and the logged 422 in place of FastAPI's own unless the app has another."""
    if app.exception_handlers.get(RequestValidationError) is request_validation_exception_handler:
        app.add_exception_handler(RequestValidationError, logged_validation_error)
    app.add_middleware(ErrorReplies, session_key=session_key, boundary=boundary_of(app))
