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

from rollbook.servers.http.embedded_call import EmbeddedRequest

JSON_TYPE: Final = "application/json"
_WITH_BODY: Final = frozenset({"POST", "PUT", "PATCH"})
_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_CONTROL: Final = re.compile(r"[\x00-\x08\x0a-\x1f\x7f\ud800-\udfff]")
_CODER: Final = SimpleCookie()
_COOKIE_NAMES: Final[set[str]] = set()
_MOST_COOKIE_NAMES: Final = 1000
_OWN: Final = {"accept": "*/*", "user-agent": "rollbook"}
_HOST_AT: Final = len("http://")
_TEXT: Final = frozenset({str})
_UNDERSTOOD: Final = frozenset({"data", "headers", "cookies", "params", "timeout", "allow_redirects"})


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
    """Return the in-process form of a request to `url`, or None when only a socket can carry it."""
    data = options.get("data")
    if not _UNDERSTOOD.issuperset(options) or not (data is None or isinstance(data, (bytes, str))):
        return None
    given = options.get("headers") or {}
    pairs = tuple(given.items() if isinstance(given, Mapping) else given)
    plain = _plain_headers(pairs) if {type(value) for _, value in pairs} <= _TEXT else None
    if plain is None:
        return None
    slash = url.find("/", _HOST_AT)
    target = url[slash:]
    if slash < 0 or options.get("params") or not target.isascii() or " " in target or "#" in target:
        target = URL(url).extend_query(options.get("params") or {}).raw_path_qs
    headers = dict(plain)
    if "content-type" not in headers:
        if isinstance(data, str):
            headers["content-type"] = "text/plain; charset=utf-8"
        elif data is not None or method.upper() in _WITH_BODY:
            headers["content-type"] = "application/octet-stream"
    cookies = cookie_header(options.get("cookies") or {})
    if cookies:
        headers["cookie"] = f"{headers['cookie']}; {cookies}" if "cookie" in headers else cookies
    body = data.encode() if isinstance(data, str) else data or b""
    return EmbeddedRequest(method.upper(), base_url, target, headers, body)


def _key(name: object) -> str | None:
    """Return a header's name in lower case; None when it is none that HTTP can carry."""
    return name.lower() if isinstance(name, str) and _NAME.fullmatch(name) else None


@lru_cache(maxsize=256)
def _plain_headers(given: tuple[tuple[str, str], ...]) -> Mapping[str, str] | None:
    """Return the headers by names in lower case; None when one is repeated or is none that HTTP can carry.

    A server's calls say the same again and again.
    """
    headers: dict[str, str] = {}
    for name, value in given:
        key = _key(name)
        if key is None or key in headers or _CONTROL.search(value):
            return None
        headers[key] = value.lstrip(" \t")
    return {**_OWN, **headers}


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
        else:
            if name not in _COOKIE_NAMES:
                _note_cookie_name(name)
            parts.append(f"{name}={_coded(value)}")
    return "; ".join(parts)
