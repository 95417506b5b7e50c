"""The cookies of a reply, read from its `Set-Cookie` headers as leniently as aiohttp reads them.

Rules:
* One header, one cookie: what cannot be read is left out, and takes no other cookie with it.
* A value may hold anything but a semicolon; in double quotes, that too.

Source: servers.md §4.2; RFC 6265 §5.2.
"""

import re
from collections.abc import Iterable
from functools import lru_cache
from http.cookies import CookieError, Morsel, SimpleCookie
from typing import Any, Final

_NO_TEXT: Final = re.compile(r"[\x00-\x08\x0a-\x1f\x7f\ud800-\udfff]")
_QUOTED_PAIR: Final = re.compile(r'[ \t]*([^=;"]+)=[ \t]*("(?:[^\\"]|\\.)*")[ \t]*(?=;|$)')
_PAIR: Final = re.compile(r"([^=;]+)=([^;]*)")
_DECODER: Final = SimpleCookie()
_RESERVED: Final[Morsel[str]] = Morsel()
_MOST_ATTRIBUTES: Final = 256
_MOST_FIELDS: Final = 1024
_MOST_NAMES: Final = 256
_NAMES: Final[set[str]] = set()
"""Names that a cookie can have, as far as replies have used them."""
_FLAGS: Final = frozenset({"secure", "httponly"})


def cookies_of(fields: Iterable[str]) -> SimpleCookie:
    """Return the cookies that `fields`, the values of `Set-Cookie` headers, set."""
    jar = SimpleCookie()
    for morsel in map(_morsel, fields):
        if morsel is not None:
            dict.__setitem__(jar, morsel.key, morsel)  # past the check of names, which this has passed
    return jar


@lru_cache(maxsize=_MOST_FIELDS)
def cookie_value(raw: bytes) -> tuple[str, str] | None:
    """Return name and value of the cookie that a field sets: what `cookies_of` reads, and nothing but that.

    Most name a cookie that was seen before.
    """
    field = raw.decode("utf-8", "surrogateescape")
    pair = None if '"' in field or _NO_TEXT.search(field) else _PAIR.match(field)
    name = "" if pair is None else pair[1].strip(" \t")
    if pair is not None and name in _NAMES and "\t" not in field:
        return name, pair[2].strip(" ")
    read = _read(field)
    if read is None:
        return None
    if len(_NAMES) < _MOST_NAMES:
        _NAMES.add(read.key)
    return read.key, read.value


def _morsel(field: str) -> "Morsel[str] | None":
    read = _read(field)
    return None if read is None else _copied(read)


def _copied(read: "Morsel[str]") -> "Morsel[str]":
    """Return a copy, as `copy` does after it has filled in the attributes that nobody gave."""
    morsel: Morsel[str] = Morsel.__new__(Morsel)
    dict.update(morsel, read)
    vars(morsel).update(vars(read))
    return morsel


@lru_cache(maxsize=_MOST_FIELDS)
def _read(field: str) -> "Morsel[str] | None":
    """Return what a field sets; a server says the same to the calls of one rollout."""
    pair = _QUOTED_PAIR.match(field) or _PAIR.match(field)
    if pair is None or _NO_TEXT.search(field):
        return None
    name, coded = pair[1].strip(" \t"), pair[2].strip(" \t")
    morsel: Morsel[str] = Morsel()
    try:
        morsel.set(name, _decoded(coded), coded)
    except CookieError:
        return None
    dict.update(morsel, _attributes(field[pair.end() :]))  # past the check of names, which these have passed
    return morsel


@lru_cache(maxsize=_MOST_ATTRIBUTES)
def _attributes(text: str) -> tuple[tuple[str, Any], ...]:
    """Return what stands behind a cookie's value, which is the same for all cookies of a server."""
    found: list[tuple[str, Any]] = []
    for attribute in text.split(";"):
        key, _, value = attribute.partition("=")
        key = key.strip().lower()
        if key in _FLAGS:
            found.append((key, True))
        elif _RESERVED.isReservedKey(key):
            found.append((key, _decoded(value.strip())))
    return tuple(found)


def _decoded(coded: str) -> str:
    return str(_DECODER.value_decode(coded)[0]) if '"' in coded else coded
