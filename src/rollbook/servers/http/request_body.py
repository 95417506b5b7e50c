"""What a request says, from aiohttp's keyword arguments: encoded once, for sockets and in-process calls alike.

Rules:
* JSON is written with orjson; numbers and text that it refuses (beyond 64 bits, lone surrogates) go the standard way.
* An in-process call takes what it understands in full; with anything else the request goes through the socket, and a
  header that cannot be sent is refused there.

Source: servers.md §4.2.
"""

import json
import re
from collections.abc import Mapping
from functools import lru_cache
from http.cookies import Morsel, SimpleCookie
from typing import Any, Final

import orjson
from pydantic import BaseModel
from yarl import URL

from rollbook.servers.http.embedded_call import EmbeddedRequest, RawPairs, raw_headers

JSON_TYPE: Final = "application/json"
_WITH_BODY: Final = frozenset({"POST", "PUT", "PATCH"})
_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_CONTROL: Final = re.compile(r"[\x00-\x08\x0a-\x1f\x7f\ud800-\udfff]")
_CODER: Final = SimpleCookie()
_COOKIE_NAMES: Final[set[str]] = set()
_MOST_COOKIE_NAMES: Final = 1000
_OWN: Final = {"accept": "*/*", "user-agent": "rollbook"}
_HOST_AT: Final = len("http://")
_UNDERSTOOD: Final = frozenset({"json", "data", "headers", "cookies", "params", "timeout", "allow_redirects"})
_CONTENT_TYPE: Final = "content-type"
_TEXT_TYPE: Final = "text/plain; charset=utf-8"
_BYTES_TYPE: Final = "application/octet-stream"


def json_bytes(value: object) -> bytes:
    """Return `value` as JSON; pydantic models are dumped first."""
    if isinstance(value, BaseModel):
        value = value.model_dump()
    try:
        return orjson.dumps(value, default=_plain)
    except TypeError:
        return json.dumps(value, default=_plain).encode()


def _plain(value: object) -> object:
    if isinstance(value, BaseModel):
        return value.model_dump()
    if isinstance(value, (set, frozenset)):
        return list(value)
    raise TypeError(f"{type(value).__name__} is no JSON")


def with_encoded_json(options: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return aiohttp's keyword arguments with `json` in place of `data`, as bytes and with its content type."""
    if "json" not in options:
        return options
    encoded = dict(options)
    value = encoded.pop("json")
    if value is None:
        return encoded
    encoded["data"] = json_bytes(value)
    headers = dict(encoded.get("headers") or {})
    if "content-type" not in [name.lower() for name in headers]:
        headers["Content-Type"] = JSON_TYPE
    encoded["headers"] = headers
    return encoded


def as_embedded_request(method: str, base_url: str, url: str, options: Mapping[str, Any]) -> EmbeddedRequest | None:
    """Return the in-process form of a request to `url`, or None when only a socket can carry it.

    `options` are aiohttp's keyword arguments; `json` may hold pydantic models.
    """
    value = options.get("json")
    body: bytes | None
    body, body_type = _body(options, method) if value is None else (json_bytes(value), JSON_TYPE)
    if body is None or not _UNDERSTOOD.issuperset(options):
        return None
    given = options.get("headers")
    try:
        headers, raw = _said(_pairs(given) if given else (), body_type)
    except (_NotSaidHereError, TypeError):
        return None
    jar = options.get("cookies")
    cookies = cookie_header(jar) if jar else ""
    if cookies:
        before = headers.get("cookie")
        headers = {**headers, "cookie": cookies if before is None else f"{before}; {cookies}"}
        raw = (*raw, (b"cookie", cookies.encode())) if before is None else raw_headers(headers)
    params = options.get("params")
    target = _with_query(url, params) if params else _target(url)
    return EmbeddedRequest(method.upper(), base_url, target, headers, body, raw)


def _body(options: Mapping[str, Any], method: str) -> tuple[bytes | None, str | None]:
    """Return a body that is no JSON and the content type that goes with it; None for a body that is none of ours."""
    data = options.get("data")
    if data is None:
        return b"", _BYTES_TYPE if method.upper() in _WITH_BODY else None
    if isinstance(data, str):
        return data.encode(), _TEXT_TYPE
    return (data if isinstance(data, bytes) else None), _BYTES_TYPE


@lru_cache(maxsize=256)
def _target(url: str) -> str:
    """Return path and query as they are sent."""
    slash = url.find("/", _HOST_AT)
    target = url[slash:]
    if slash < 0 or not target.isascii() or " " in target or "#" in target:
        return _with_query(url, {})
    return target


def _with_query(url: str, params: Any) -> str:
    """Return the same with `params` behind the query."""
    return URL(url).extend_query(params).raw_path_qs


class _NotSaidHereError(Exception):
    """Headers that an in-process call does not take."""


def _pairs(given: Any) -> tuple[tuple[str, str], ...]:
    """Return headers as pairs."""
    return tuple(given.items() if isinstance(given, (dict, Mapping)) else given)


def _key(name: object) -> str | None:
    """Return a header's name in lower case; None when it is none that HTTP can carry."""
    return name.lower() if isinstance(name, str) and _NAME.fullmatch(name) else None


@lru_cache(maxsize=512)
def _said(given: tuple[tuple[str, str], ...], body_type: str | None) -> tuple[Mapping[str, str], RawPairs]:
    """Return the headers by names in lower case, and as they are sent. A server's calls say the same again and again.

    Raises:
        _NotSaidHereError: one is repeated, is no text, or is none that HTTP has.

    """
    headers: dict[str, str] = {}
    for name, value in given:
        key = _key(name)
        if key is None or key in headers or type(value) is not str or _CONTROL.search(value):
            raise _NotSaidHereError
        headers[key] = value.lstrip(" \t")
    if body_type is not None and _CONTENT_TYPE not in headers:
        headers[_CONTENT_TYPE] = body_type
    whole = {**_OWN, **headers}
    return whole, raw_headers(whole)


@lru_cache(maxsize=1024)
def _coded(value: str) -> str:
    """Return a cookie's value as it is sent; a rollout sends each of its cookies several times."""
    return _CODER.value_encode(value)[1]


def _note_cookie_name(name: str) -> None:
    """Keep a name that a cookie can have, so that it is looked at once; the names are those of servers."""
    morsel: Morsel[str] = Morsel()
    morsel.set(name, "", "")
    if len(_COOKIE_NAMES) < _MOST_COOKIE_NAMES:
        _COOKIE_NAMES.add(name)


def cookie_header(cookies: "Mapping[str, str | Morsel[str]]") -> str:
    """Return the `Cookie` header for `cookies`, given as text or as the morsels of an earlier reply.

    Raises:
        http.cookies.CookieError: a name that no cookie can have.

    """
    parts: list[str] = []
    for name, value in sorted(cookies.items()):
        if isinstance(value, Morsel):
            parts.append(f"{value.key}={value.coded_value}")
            continue
        if name not in _COOKIE_NAMES:
            _note_cookie_name(name)
        parts.append(f"{name}={_coded(value)}")
    return "; ".join(parts)
