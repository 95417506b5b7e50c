"""Where a request goes, read from its URL once.

Rules:
* An address that is none is refused before anything is looked up or sent.
* What stands in a URL cannot end a line of the request: space and control characters are refused or encoded.

Source: RFC 9112 §3.2; RFC 3986.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final
from urllib.parse import quote, urlsplit

import msgspec

from rollbook.records.exchange import DEADLINE_HEADER
from rollbook.servers.http.redaction import redacted_url
from rollbook.servers.wire.broken import Broken, Kind

_PORTS: Final = {"http": 80, "https": 443}
_SAFE: Final = "%/:?@!$&'()*+,;=-._~[]"
_ODD: Final = re.compile(r"[\x00-\x20\x7f]")


class Endpoint(msgspec.Struct, frozen=True):
    """One listening socket. `host` is a name or a numeric address."""

    host: str
    port: int
    tls: bool


class Target(msgspec.Struct, frozen=True):
    """An endpoint, and what is asked of it: `head` begins the request, and `shown` is what a message says of it."""

    endpoint: Endpoint
    authority: str
    path: str
    head: bytes
    shown: str


@lru_cache(maxsize=1024)
def target_of(url: str) -> Target:
    """Return the target of a POST to `url`.

    Raises:
        Broken: it is no address that HTTP can be spoken to.

    """
    try:
        parts = urlsplit(url)
        host, port = (parts.hostname or "").encode("idna").decode("ascii"), parts.port
    except ValueError as error:
        raise Broken(Kind.BAD_URL, str(error)) from error
    if parts.scheme not in _PORTS:
        raise Broken(Kind.NOT_HTTP, f"{redacted_url(url)} is neither http nor https")
    if not host or "@" in parts.netloc or _ODD.search(host):
        raise Broken(Kind.BAD_URL, f"{redacted_url(url)} names no host")
    shown_host = f"[{host}]" if ":" in host else host
    authority = shown_host if port is None else f"{shown_host}:{port}"
    path = quote(parts.path or "/", _SAFE) + (f"?{quote(parts.query, _SAFE)}" if parts.query else "")
    head = f"POST {path} HTTP/1.1\r\nHost: {authority}\r\nAccept: */*\r\nUser-Agent: rollbook\r\n"
    endpoint = Endpoint(host, _PORTS[parts.scheme] if port is None else port, parts.scheme == "https")
    return Target(endpoint, authority, path, head.encode("ascii"), redacted_url(url))


JSON: Final[Mapping[str, str]] = {"Content-Type": "application/json"}
_JSON_LINES: Final = b"Content-Type: application/json\r\n"
_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_CONTROL: Final = re.compile(r"[\x00-\x08\x0a-\x1f\x7f\ud800-\udfff]")


@lru_cache(maxsize=64)
def deadline_value(seconds: float) -> str:
    """Return what `X-Rollout-Deadline` says: seconds, to the millisecond."""
    return f"{seconds:.3f}".rstrip("0").rstrip(".")


def lines_of(headers: Mapping[str, str]) -> bytes:
    """Return headers as they are written.

    Raises:
        ValueError: a header that HTTP cannot carry.

    """
    return _JSON_LINES if headers is JSON else b"".join(_line(name, value) for name, value in headers.items())


def request_of(
    target: Target, headers: Mapping[str, str] | bytes, seconds: float | None, body: bytes, further: int = 0
) -> bytes:
    """Return head and body of a request as they are written, in one piece; `seconds` is what it may take, if limited.

    `headers` may be lines already. `further` bytes of the body are written after it.

    Raises:
        ValueError: a header that HTTP cannot carry.

    """
    lines = headers if isinstance(headers, bytes) else lines_of(headers)
    if seconds is not None:
        lines += _line(DEADLINE_HEADER, deadline_value(seconds))
    return b"%b%bContent-Length: %d\r\n\r\n%b" % (target.head, lines, len(body) + further, body)


@lru_cache(maxsize=64)
def _line(name: str, value: str) -> bytes:
    if not _NAME.fullmatch(name) or _CONTROL.search(value):
        raise ValueError(f"{name!r}: {value!r} is no header that HTTP can carry")
    return f"{name}: {value}\r\n".encode()
