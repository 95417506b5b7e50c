"""Cookies as agents and environment servers carry them: from one server's reply to the next request.

Rules:
* A jar is a plain mapping of names to values; what a reply sets replaces what was there under the same name.

Source: servers.md §3.4, §6.1.
"""

import re
from collections.abc import Mapping
from http.cookies import Morsel
from typing import Final

from aiohttp import ClientResponse
from starlette.responses import Response

from rollbook.servers.http.embedded_response import EmbeddedResponse

_PLAIN: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~:-]+")
_RESERVED: Final[Morsel[str]] = Morsel()
_ATTRIBUTES: Final = "; Path=/; SameSite=lax"


def merged_cookies(
    jar: Mapping[str, str] | None, given: "ClientResponse | Mapping[str, str | Morsel[str]]"
) -> dict[str, str]:
    """Return `jar` with the cookies of a reply (or of a request) on top; a reply may be given itself."""
    if isinstance(given, EmbeddedResponse):
        return {**(jar or {}), **given.cookie_values()}
    cookies = given if isinstance(given, Mapping) else given.cookies
    fresh = {name: value.value if isinstance(value, Morsel) else value for name, value in cookies.items()}
    return {**(jar or {}), **fresh}


def set_cookies(response: Response, jar: Mapping[str, str]) -> None:
    """Put every cookie of `jar` on `response`, as its `set_cookie` does; most need no quoting."""
    for name, value in jar.items():
        if _PLAIN.fullmatch(name) and _PLAIN.fullmatch(value) and not _RESERVED.isReservedKey(name):
            response.raw_headers.append((b"set-cookie", f"{name}={value}{_ATTRIBUTES}".encode("latin-1")))
        else:
            response.set_cookie(name, value)
