"""Calls of model endpoints and between servers, carried by the wire client and answered as aiohttp answers them.

Rules:
* It carries plain POSTs over http alone. TLS, proxies, a limit on silence, credentials in an address and headers that
  the wire client writes itself stay with aiohttp.
* Idle connections are used again as the session's are, for as long as its settings say.
* The limits of the pool hold here too: a call beyond them waits, which counts as its time.
* An error is of the class that aiohttp has for it, so that whoever decides what becomes of a call sees one kind.

Source: servers.md §4.1, §4.4.
"""

import asyncio
import time
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from functools import lru_cache
from typing import Final

from aiohttp import (
    ClientConnectionError,
    ClientConnectorDNSError,
    ClientConnectorError,
    ClientError,
    ClientOSError,
    ClientPayloadError,
    ClientResponseError,
    ConnectionTimeoutError,
    InvalidURL,
    RequestInfo,
    ServerDisconnectedError,
)
from aiohttp.client_reqrep import ConnectionKey
from multidict import CIMultiDict, CIMultiDictProxy
from yarl import URL

from rollbook.records.exchange import Exchange
from rollbook.servers.http.client_settings import ClientSettings
from rollbook.servers.http.embedded_call import EmbeddedRequest
from rollbook.servers.http.embedded_response import EmbeddedResponse, RawHeaders
from rollbook.servers.http.redaction import redacted_url
from rollbook.servers.wire.broken import Broken, Kind
from rollbook.servers.wire.poster import Poster
from rollbook.servers.wire.target import lines_of

_WRITTEN_ALREADY: Final = frozenset({"accept", "user-agent"})
_NOT_CARRIED: Final = frozenset(
    {"host", "connection", "content-length", "transfer-encoding", "expect", "upgrade", "te"}
)
_ENCODINGS: Final = {"accept-encoding": "gzip, deflate"}
_OWN: Final = {"accept": "*/*", "user-agent": "rollbook"}
_NOT_CONNECTED: Final = {
    Kind.NOT_CONNECTED: ClientConnectorError,
    Kind.LOCAL: ClientConnectorError,
    Kind.UNKNOWN_HOST: ClientConnectorDNSError,
}
_BY_KIND: Final[Mapping[Kind, type[ClientError]]] = {
    Kind.DISCONNECTED: ServerDisconnectedError,
    Kind.CUT_SHORT: ClientPayloadError,
    Kind.UNKNOWN_ENCODING: ClientPayloadError,
    Kind.TOO_LARGE: ClientPayloadError,
}
_BAD_REQUEST: Final = 400
_HTTP_PORT: Final = 80

Places = AbstractAsyncContextManager[object]
Said = tuple[tuple[str, str], ...]


class WireCalls:
    """The calls of one event loop that the wire client carries."""

    def __init__(self, settings: ClientSettings) -> None:
        self._poster = Poster(
            connect_seconds=settings.connect_seconds,
            grace_seconds=0.0,
            idle_seconds=settings.pool_keepalive_seconds,
            rests=False,
            tcp_keepalive=settings.tcp_keepalive,
        )
        self._limit_per_host = settings.connector_limit_per_host
        self._all = _places(settings.connector_limit)
        self._of_host: dict[str, Places] = {}

    async def post(self, asked: EmbeddedRequest, seconds: float | None) -> EmbeddedResponse:
        """Send one request, and return its whole reply within `seconds`.

        Raises:
            aiohttp.ClientError, TimeoutError: no whole reply came.

        """
        exchange = Exchange(time.monotonic)
        raw: RawHeaders = []
        try:
            async with asyncio.timeout(seconds), self._all, self._places_at(asked.base_url):
                lines = _lines(tuple(asked.headers.items()))
                reply = await self._poster.exchanged(
                    asked.base_url, asked.url, asked.body, exchange, headers=lines, raw=raw
                )
        except Broken as broken:
            raise client_error(broken, asked) from (broken.__cause__ or broken)
        return EmbeddedResponse(asked, reply.status, raw, reply.body)

    def _places_at(self, base_url: str) -> Places:
        places = self._of_host.get(base_url)
        if places is None:
            places = self._of_host[base_url] = _places(self._limit_per_host)
        return places

    async def close(self) -> None:
        """Close every connection."""
        await self._poster.aclose()


def wire_calls(settings: ClientSettings) -> WireCalls | None:
    """Return what carries calls under `settings`; None where they ask for what only aiohttp does."""
    if settings.trust_env or settings.read_seconds is not None or settings.connect_seconds <= 0:
        return None
    return WireCalls(settings)


@lru_cache(maxsize=256)
def base_of(method: str, url: str) -> str | None:
    """Return `http://host:port` of a call that the wire client may carry; None for any other."""
    scheme, _, rest = url.partition("://")
    authority = rest.partition("/")[0]
    if method != "POST" or scheme != "http" or not authority or set("@?#\\") & set(authority):
        return None
    return f"http://{authority}"


def may_carry(headers: Mapping[str, str]) -> bool:
    """Whether the wire client writes a request with these `headers` as it was given."""
    return _may_carry(tuple(headers.items()))


@lru_cache(maxsize=256)
def _may_carry(said: Said) -> bool:
    headers = dict(said)
    return _NOT_CARRIED.isdisjoint(headers) and all(headers.get(name) == value for name, value in _OWN.items())


@lru_cache(maxsize=256)
def _lines(said: Said) -> bytes:
    """Return what is written of these headers beside what the wire client writes itself."""
    return lines_of(_ENCODINGS | {name: value for name, value in said if name not in _WRITTEN_ALREADY})


def _places(most: int) -> Places:
    return asyncio.Semaphore(most) if most else nullcontext()


def client_error(broken: Broken, asked: EmbeddedRequest) -> ClientError:
    """Return aiohttp's error for what was seen of an exchange."""
    kind, said, cause = broken.kind, broken.said, broken.__cause__
    if kind in _NOT_CONNECTED:
        fault = cause if isinstance(cause, OSError) else OSError(None, said)
        return _NOT_CONNECTED[kind](_key(URL(asked.url)), fault)
    if kind is Kind.TOO_LATE:
        return ConnectionTimeoutError(f"Connection timeout to host {redacted_url(asked.url)}")
    if kind is Kind.NO_HTTP:
        return ClientResponseError(_info(asked), (), status=_BAD_REQUEST, message=said)
    if kind is Kind.RESET:
        return ClientOSError(*(cause.args if isinstance(cause, OSError) else (None, said)))
    if kind is Kind.BAD_URL:
        return InvalidURL(redacted_url(asked.url), said)
    return _BY_KIND.get(kind, ClientConnectionError)(said)


def _key(url: URL) -> ConnectionKey:
    return ConnectionKey(url.host or "", url.port or _HTTP_PORT, False, True, None, None, None, None)  # noqa: FBT003


def _info(asked: EmbeddedRequest) -> RequestInfo:
    url = URL(asked.url)
    return RequestInfo(url, asked.method, CIMultiDictProxy(CIMultiDict(asked.headers)), url)
