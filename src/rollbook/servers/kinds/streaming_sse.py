"""Server-sent events around a call that answers all at once.

Rules:
* The call runs to its end, then its events are replayed; a comment every 15 s keeps the connection while it runs.
* Once headers are out, a failure is an event; its text names no inner address and no key.
* A client that goes away cancels the call.

Source: servers.md §3.9, servers.md §14.5.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from typing import Any, Final, TypeVar

from fastapi import HTTPException
from fastapi.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from rollbook.records.json_values import JsonObject
from rollbook.servers.kinds.model_server_text import reply_bytes

_LOG = logging.getLogger(__name__)
KEEPALIVE_SECONDS: Final = 15.0
KEEPALIVE: Final = b": keepalive\n\n"
DONE: Final = b"data: [DONE]\n\n"
_HEADERS: Final = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
_SERVER_ERRORS_FROM: Final = 500

T = TypeVar("T")


def data_event(data: Mapping[str, Any]) -> bytes:
    """An event without a name."""
    return b"data: " + reply_bytes(data) + b"\n\n"


def named_event(name: str, data: Mapping[str, Any]) -> bytes:
    """An event with a name."""
    return f"event: {name}\n".encode() + data_event(data)


def failure_json(error: BaseException) -> JsonObject:
    """What a client may know of a failure: `{message, type, code}`; the log gets the rest."""
    known = isinstance(error, HTTPException)
    status = error.status_code if isinstance(error, HTTPException) else _SERVER_ERRORS_FROM
    detail = error.detail if isinstance(error, HTTPException) else "Model request failed"
    _LOG.warning("a streamed model call failed: %r", error, exc_info=None if known else error)
    kind = "server_error" if status >= _SERVER_ERRORS_FROM else "invalid_request_error"
    return {"message": f"HTTP {status}: {detail}", "type": kind, "code": status}


async def _replay(
    call: "asyncio.Task[T]", events: Callable[[T], Iterable[bytes]], failed: Callable[[JsonObject], Iterable[bytes]]
) -> AsyncIterator[bytes]:
    while not call.done():
        await asyncio.wait({call}, timeout=KEEPALIVE_SECONDS)
        if not call.done():
            yield KEEPALIVE
    error = asyncio.CancelledError() if call.cancelled() else call.exception()
    for event in events(call.result()) if error is None else failed(failure_json(error)):
        yield event


class Replayed(StreamingResponse):
    """A reply that holds a call: when the reply ends, sent or not, the call ends too."""

    def __init__(self, call: "asyncio.Task[T]", body: AsyncIterator[bytes]) -> None:
        super().__init__(body, media_type="text/event-stream", headers=_HEADERS)
        self._call = call

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the reply."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._call.cancel()


def streamed(
    call: "asyncio.Task[T]", events: Callable[[T], Iterable[bytes]], failed: Callable[[JsonObject], Iterable[bytes]]
) -> Replayed:
    """A reply that waits for `call` and then sends its events, or those of its failure."""
    return Replayed(call, _replay(call, events, failed))


async def fails_early(call: "asyncio.Task[Any]") -> bool:
    """Wait as long as headers may wait, and say whether the call has failed by then; cancelled if the wait is."""
    try:
        await asyncio.wait({call}, timeout=KEEPALIVE_SECONDS)
    except asyncio.CancelledError:
        call.cancel()
        raise
    return call.done() and (call.cancelled() or call.exception() is not None)
