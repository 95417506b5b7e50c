"""A rollout's request to a server of this process: no socket, and the same account of how it went.

Rules:
* Another event loop's server is asked through its port.
* The exchange is told of a reply as soon as it begins, and one above the bound ends there: at its head where that
  declares so much, else at the first byte too many.
* Cancelling the call cancels the handler. A handler that has been started may have done its work.

Source: collection.md §3.3, §3.6; servers.md §4.2.
"""

import asyncio
from typing import Final

from aiohttp import ClientError
from msgspec import Struct

from rollbook.records.exchange import DEADLINE_HEADER, Exchange, Phase, Reply, SendFailed, Upload
from rollbook.servers.http.embedded_call import EmbeddedRequest
from rollbook.servers.http.embedded_registry import EmbeddedServer, find_embedded
from rollbook.servers.http.embedded_response import RawHeaders
from rollbook.servers.wire.body import too_large
from rollbook.servers.wire.broken import Broken
from rollbook.servers.wire.poster import send_failed
from rollbook.servers.wire.target import deadline_value, target_of

_DEADLINE: Final = DEADLINE_HEADER.lower()
_HEADERS: Final = {"accept": "*/*", "user-agent": "rollbook", "content-type": "application/json"}


async def post_embedded(server: str, url: str, body: bytes | Upload, exchange: Exchange, limit: int) -> Reply | None:
    """POST `body` to `url` in this process and return the reply, of `limit` bytes at most; None if it is not here.

    Raises:
        SendFailed: no whole reply came; says what is known of the delivery.

    """
    embedded = find_embedded(url)
    if embedded is None:
        return None
    if embedded.loop is not asyncio.get_running_loop():
        embedded.open_port()
        return None
    exchange.host = f"{embedded.host}:{embedded.port}"
    headers = _HEADERS
    if exchange.seconds is not None:
        headers = {**_HEADERS, _DEADLINE: deadline_value(exchange.seconds)}
    try:
        whole = body if isinstance(body, bytes) else b"".join(body.pieces())
        request = EmbeddedRequest("POST", embedded.base_url, target_of(url).path, headers, whole)
        return await _answered(embedded, request, exchange, limit)
    except Broken as broken:
        raise send_failed(server, url, broken, exchange) from broken
    except (ClientError, OSError) as error:
        kind = type(error).__name__
        raise SendFailed(
            f"{server} at {url}: {kind}: {error}",
            delivery=exchange.delivery,
            exception_type=kind,
            status=exchange.status,
        ) from error


class _Reading(Struct, frozen=True):
    """What is to be known of a reply while it comes."""

    exchange: Exchange
    limit: int

    def begins(self, status: int, headers: RawHeaders) -> Broken | None:
        self.exchange.status = status
        self.exchange.enter(Phase.READING)
        size = _declared(headers)
        return too_large(f"{size} bytes", self.limit) if size > self.limit else None

    def refusal(self, size: int) -> Broken | None:
        return too_large(f"more than {self.limit} bytes", self.limit) if size > self.limit else None


def _declared(headers: RawHeaders) -> int:
    """Return how many bytes of body a reply declares, 0 where it does not."""
    told = next((value for name, value in headers if name.lower() == b"content-length"), b"")
    return int(told) if told.isdigit() else 0


async def _answered(embedded: EmbeddedServer, request: EmbeddedRequest, exchange: Exchange, limit: int) -> Reply:
    exchange.enter(Phase.WAITING)
    reading = _Reading(exchange, limit)
    response = await embedded.call(request, watch=reading)
    if exchange.phase is not Phase.READING:
        reading.begins(response.status, response.raw_headers)
    body = await response.read()
    if len(body) > limit:
        raise too_large(f"{len(body)} bytes", limit)
    headers = {
        name.decode("latin-1").lower(): value.decode("utf-8", "surrogateescape") for name, value in response.raw_headers
    }
    return Reply(response.status, body, headers)
