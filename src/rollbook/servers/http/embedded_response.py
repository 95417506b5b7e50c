"""The reply of an in-process call, with the surface of an aiohttp response.

Rules:
* The body is whole when the caller gets the reply; reading it never waits.
* Headers, cookies and URL are built when somebody asks for them: most callers read status and body alone.
* What a caller of aiohttp may rely on holds here too: cookies, encodings and the check of `json()` are the same.

Source: servers.md §4.2.
"""

import codecs
import http.client
import json
import re
from collections.abc import AsyncIterator, Callable, Mapping
from functools import cached_property
from http.cookies import SimpleCookie
from types import TracebackType
from typing import Any, Final, Protocol, Self

from aiohttp import ClientResponse, ClientResponseError, ContentTypeError, RequestInfo
from multidict import CIMultiDict, CIMultiDictProxy
from yarl import URL

from rollbook.servers.http.set_cookie import cookie_value, cookies_of

RawHeaders = list[tuple[bytes, bytes]]
_JSON: Final = "application/json"
_BAD_REQUEST: Final = 400
_JSON_TYPES: Final = re.compile(r"application/(?:[\w.+-]+?\+)?json")


class EmbeddedBody:
    """The whole body, read as a stream."""

    __slots__ = ("_at", "_body")

    def __init__(self, body: bytes) -> None:
        self._body = body
        self._at = 0

    def at_eof(self) -> bool:
        """Whether everything was read."""
        return self._at >= len(self._body)

    async def read(self, n: int = -1) -> bytes:
        """Return the next `n` bytes, or all that is left."""
        return self._take(len(self._body) if n < 0 else self._at + n)

    async def readany(self) -> bytes:
        """Return all that is left."""
        return await self.read()

    async def readline(self) -> bytes:
        """Return the next line with its end, or what is left."""
        return self._take((self._body.find(b"\n", self._at) + 1) or len(self._body))

    async def iter_chunked(self, n: int) -> AsyncIterator[bytes]:
        """Yield pieces of at most `n` bytes."""
        while not self.at_eof():
            yield await self.read(n)

    async def iter_any(self) -> AsyncIterator[bytes]:
        """Yield all that is left, once."""
        if not self.at_eof():
            yield await self.read()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while not self.at_eof():
            yield await self.readline()

    def _take(self, end: int) -> bytes:
        piece = self._body[self._at : end]
        self._at += len(piece)
        return piece


class Asked(Protocol):
    """What a response remembers of its request."""

    @property
    def method(self) -> str:
        """The request's method."""
        ...

    @property
    def url(self) -> str:
        """The address that was called."""
        ...

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers that were sent."""
        ...


class EmbeddedResponse:
    """What `aiohttp.ClientResponse` offers, for a reply that never crossed a socket."""

    history: tuple[ClientResponse, ...] = ()
    closed = True
    connection = None

    def __init__(self, asked: "Asked", status: int, raw_headers: RawHeaders, body: bytes) -> None:
        self.method = asked.method
        self.status = status
        self.raw_headers = raw_headers
        self._asked = asked
        self.body = body

    @property
    def ok(self) -> bool:
        """Whether the status is below 400."""
        return self.status < _BAD_REQUEST

    @cached_property
    def reason(self) -> str:
        """The status's standard phrase, empty for a status of nobody's."""
        return http.client.responses.get(self.status, "")

    @cached_property
    def headers(self) -> CIMultiDictProxy[str]:
        """The reply's headers."""
        return CIMultiDictProxy(CIMultiDict((_text(name), _text(value)) for name, value in self.raw_headers))

    @cached_property
    def cookies(self) -> SimpleCookie:
        """The cookies that the reply sets."""
        return cookies_of([_text(value) for name, value in self.raw_headers if name.lower() == b"set-cookie"])

    def cookie_values(self) -> dict[str, str]:
        """Return names and values of the cookies that the reply sets."""
        found: dict[str, str] = {}
        for name, value in self.raw_headers:
            if name == b"set-cookie" or name.lower() == b"set-cookie":
                pair = cookie_value(value)
                if pair is not None:
                    found[pair[0]] = pair[1]
        return found

    @cached_property
    def url(self) -> URL:
        """The address that was called."""
        return URL(self._asked.url)

    @property
    def real_url(self) -> URL:
        """The address that was called."""
        return self.url

    @property
    def host(self) -> str | None:
        """The host that was called."""
        return self.url.host

    @property
    def content_type(self) -> str:
        """The media type without parameters."""
        return str(self.headers.get("content-type", "application/octet-stream")).partition(";")[0].strip().lower()

    @property
    def charset(self) -> str | None:
        """The charset that the media type names."""
        _, _, after = str(self.headers.get("content-type", "")).partition("charset=")
        return after.partition(";")[0].strip(' "') or None

    @property
    def content_length(self) -> int | None:
        """The body's size in bytes."""
        return len(self.body)

    @cached_property
    def content(self) -> EmbeddedBody:
        """The body as a stream."""
        return EmbeddedBody(self.body)

    @property
    def request_info(self) -> RequestInfo:
        """What was asked."""
        return RequestInfo(self.url, self.method, CIMultiDictProxy(CIMultiDict(self._asked.headers)), self.url)

    async def read(self) -> bytes:
        """Return the body."""
        return self.body

    def get_encoding(self) -> str:
        """Return the encoding that the media type names; UTF-8 when it names none, or one that nobody knows."""
        try:
            return codecs.lookup(self.charset or "utf-8").name
        except (LookupError, ValueError):
            return "utf-8"

    async def text(self, encoding: str | None = None, errors: str = "strict") -> str:
        """Return the body as text."""
        return self.body.decode(encoding or self.get_encoding(), errors)

    async def json(
        self,
        *,
        encoding: str | None = None,
        loads: Callable[[str], Any] = json.loads,
        content_type: str | None = _JSON,
    ) -> Any:
        """Return the body as JSON; None when it is empty.

        Raises:
            ContentTypeError: the media type is another than `content_type`; None asks for no check.

        """
        found = str(self.headers.get("content-type", "")).lower()
        if content_type and not (_JSON_TYPES.match(found) if content_type == _JSON else content_type in found):
            message = f"Attempt to decode JSON with unexpected mimetype: {found}"
            raise ContentTypeError(
                self.request_info, self.history, status=self.status, message=message, headers=self.headers
            )
        body = self.body.strip()
        return loads(body.decode(encoding or self.get_encoding())) if body else None

    def raise_for_status(self) -> None:
        """Raise `ClientResponseError` for a status of 400 or more."""
        if not self.ok:
            raise ClientResponseError(
                self.request_info, (), status=self.status, message=self.reason, headers=self.headers
            )

    def release(self) -> None:
        """Nothing is held."""

    def close(self) -> None:
        """Nothing is held."""

    async def wait_for_close(self) -> None:
        """Nothing is held."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogateescape")
