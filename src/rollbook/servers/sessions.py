"""Cookie sessions: one signed cookie per server, and a session id in every one of them.

Rules:
* Cookie name and signing secret are `<class>___<instance>`, so one jar can hold the cookies of all servers.
* Every reply carries `Set-Cookie`: a client that forwards what it was given never loses its session.
* Cookies are those of Starlette and itsdangerous, byte for byte; the key is derived once, not for every signature, and
  a cookie that was given out within this minute is known without another look at its signature.

Source: servers.md §3.4.
"""

import hashlib
import hmac
import json
import os
import re
import time
from base64 import b64decode
from binascii import b2a_base64
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any, Final

from fastapi import FastAPI
from itsdangerous import BadSignature, TimestampSigner
from itsdangerous.encoding import base64_decode, base64_encode, bytes_to_int, int_to_bytes
from itsdangerous.signer import SigningAlgorithm
from starlette.datastructures import MutableHeaders
from starlette.middleware import sessions
from starlette.middleware.sessions import SessionMiddleware
from starlette.requests import cookie_parser
from starlette.types import ASGIApp, Receive, Scope, Send

from rollbook.servers.session_key import SESSION_ID_KEY

_Session: Final[type[dict[str, Any]]] = getattr(sessions, "Session", dict)
_VARY: Final = (b"vary", b"Cookie")
_ID_KEY: Final = SESSION_ID_KEY.encode()
_PLAIN_ID: Final = re.compile(r"[0-9a-f-]+")
_MINUTE: Final = 60
_VARIANTS: Final = {digit: "89ab"[int(digit, 16) % 4] for digit in "0123456789abcdef"}
_MOST_REMEMBERED: Final = 2048
_SHA1_BLOCK: Final = 64
_INNER_PAD: Final = bytes(byte ^ 0x36 for byte in range(256))
_OUTER_PAD: Final = bytes(byte ^ 0x5C for byte in range(256))
_FOR_URLS: Final = bytes.maketrans(b"+/", b"-_")
_GONE: Final = "expires=Thu, 01 Jan 1970 00:00:00 GMT; "


_sha1: Final = partial(hashlib.sha1, usedforsecurity=False)
"""As a part of HMAC, for which it is still good."""


class _OneKey(SigningAlgorithm):
    """HMAC with SHA-1 under one key, as itsdangerous signs unless told otherwise; its two hashes are begun already."""

    def __init__(self, key: bytes) -> None:
        block = (key if len(key) <= _SHA1_BLOCK else _sha1(key).digest()).ljust(_SHA1_BLOCK, b"\0")
        self._inner = _sha1(block.translate(_INNER_PAD))
        self._outer = _sha1(block.translate(_OUTER_PAD))

    def get_signature(self, key: bytes, value: bytes) -> bytes:
        del key
        inner, outer = self._inner.copy(), self._outer.copy()
        inner.update(value)
        outer.update(inner.digest())
        return outer.digest()


class _Signer(TimestampSigner):
    def __init__(self, secret: str) -> None:
        super().__init__(secret)
        self._derived = super().derive_key(secret)
        self.algorithm = _OneKey(self._derived)
        self._second, self._stamp = -1, b""

    def sign(self, value: str | bytes) -> bytes:
        return self.signed_at(self.get_timestamp(), value.encode() if isinstance(value, str) else value)

    def signed_at(self, now: int, value: bytes) -> bytes:
        """Return `value`, signed in the second `now`."""
        if now != self._second:
            self._second, self._stamp = now, self.sep + base64_encode(int_to_bytes(now))
        stamped = value + self._stamp
        signature = b2a_base64(self.algorithm.get_signature(self._derived, stamped), newline=False)
        return stamped + self.sep + signature.translate(_FOR_URLS).rstrip(b"=")

    def opened(self, cookie: bytes, max_age: int) -> bytes:
        """Return what was signed, as `unsign` does, which tells what is wrong with a cookie that is not in order."""
        now = self.get_timestamp()
        stamped, _, signature = cookie.rpartition(self.sep)
        if hmac.compare_digest(signature, base64_encode(self.algorithm.get_signature(self._derived, stamped))):
            value, _, stamp = stamped.rpartition(self.sep)
            if 0 <= now - bytes_to_int(base64_decode(stamp)) <= max_age:
                return value
        return self.unsign(cookie, max_age)

    def derive_key(self, secret_key: str | bytes | None = None) -> bytes:
        del secret_key
        return self._derived


class _Remembered:
    """The cookies that were given out: by id within this second, and ids by value within this minute.

    Of more than fit, the latest are kept: rollouts come and go, and a session is asked about while its rollout runs.
    """

    __slots__ = ("_before", "_cookies", "_ids", "_second")

    def __init__(self) -> None:
        self._second = -1
        self._cookies: dict[str, bytes] = {}
        self._ids: dict[str, str] = {}
        self._before: dict[str, str] = {}

    def _forget(self, now: int) -> None:
        """Forget what was signed in another second than `now`, and once a minute what was given out."""
        if now // _MINUTE != self._second // _MINUTE:
            self._ids.clear()
            self._before.clear()
        self._second = now
        self._cookies.clear()

    def cookie(self, name: str, now: int) -> bytes | None:
        """Return the `Set-Cookie` header that the session `name` was given within the second `now`."""
        if now != self._second:
            self._forget(now)
        return self._cookies.get(name)

    def name_in(self, value: str, now: int) -> str | None:
        """Return the id in a cookie's value that was given out within this minute and holds nothing else."""
        if now != self._second:
            self._forget(now)
        return self._ids.get(value) or self._before.get(value)

    def keep(self, name: str, value: str, cookie: bytes) -> None:
        """Remember a session's cookie."""
        if len(self._ids) >= _MOST_REMEMBERED:
            self._before, self._ids = self._ids, {}
        if len(self._cookies) < _MOST_REMEMBERED:
            self._cookies[name] = cookie
        self._ids[value] = name


class SignedSessions(SessionMiddleware):
    """Starlette's sessions, whose two halves can be called without wrapping an application."""

    def __init__(self, app: ASGIApp, secret_key: str, session_cookie: str) -> None:
        super().__init__(app, secret_key, session_cookie)
        self.signer = self._signer = _Signer(secret_key)
        self._max_age = self.max_age or 0
        self._remembered = _Remembered()
        self._own_begins = f"{self.session_cookie}="
        self._attributes = f"; path={self.path}; Max-Age={self.max_age}; {self.security_flags}"

    def opened(self, scope: Scope, cookies: bytes | None) -> bool:
        """Give a request its session, with an id, and return whether the request's `cookies` held it."""
        cookie = None if cookies is None else self._own(cookies.decode("latin-1"))
        if cookie is not None and self._max_age >= _MINUTE:
            known = self._remembered.name_in(cookie, int(time.time()))
            if known is not None:
                scope["session"] = _Session({SESSION_ID_KEY: known})
                return True
        held = self._held(cookie)
        if not held:
            scope["session"] = _Session({SESSION_ID_KEY: _new_id()})
            return held is not None
        session = scope["session"] = _Session(held)
        with_id(session)
        return True

    def _own(self, cookies: str) -> str | None:
        """Return the last value that a request's cookies give this server's; one jar holds those of all servers."""
        name = self.session_cookie
        if cookies.startswith(self._own_begins) and ";" not in cookies and '"' not in cookies:
            return cookies[len(self._own_begins) :].strip()
        own = [cookie for cookie in cookies.split(";") if name in cookie]
        if len(own) == 1 and '"' not in own[0]:
            key, is_pair, value = own[0].partition("=")
            return value.strip() if is_pair and key.strip() == name else None
        return cookie_parser(";".join(own)).get(name)

    def closed(
        self, headers: Iterable[tuple[bytes, bytes]], session: Mapping[str, object], *, came: bool
    ) -> list[tuple[bytes, bytes]]:
        """Return the headers of a reply with the session's cookie; `came` says whether there was one before."""
        raw = [*headers]
        for name, _ in raw:
            if name == b"vary":
                varying = MutableHeaders(raw=raw)
                varying.add_vary_header("Cookie")
                raw = varying.raw
                break
        else:
            raw.append(_VARY)
        if session:
            raw.append((b"set-cookie", self._cookie(session)))
        elif came:
            gone = f"{self.session_cookie}=null; path={self.path}; {_GONE}{self.security_flags}"
            raw.append((b"set-cookie", gone.encode("latin-1")))
        return raw

    def _cookie(self, session: Mapping[str, object]) -> bytes:
        """Return the `Set-Cookie` header of a session; that of one with an id and nothing else is remembered."""
        name = session.get(SESSION_ID_KEY)
        if len(session) != 1 or not isinstance(name, str):
            return self._signed(int(time.time()), json.dumps(session).encode())[1]
        now = int(time.time())
        cookie = self._remembered.cookie(name, now)
        if cookie is not None:
            return cookie
        if not _PLAIN_ID.fullmatch(name):
            return self._signed(now, json.dumps(session).encode())[1]
        value, cookie = self._signed(now, b'{"%b": "%b"}' % (_ID_KEY, name.encode()))
        self._remembered.keep(name, value, cookie)
        return cookie

    def _signed(self, now: int, session: bytes) -> tuple[str, bytes]:
        value = self._signer.signed_at(now, b2a_base64(session, newline=False)).decode("ascii")
        return value, f"{self.session_cookie}={value}{self._attributes}".encode("latin-1")

    def _held(self, cookie: str | None) -> dict[str, Any] | None:
        if cookie is None:
            return None
        try:
            return dict(json.loads(b64decode(self._signer.opened(cookie.encode(), self._max_age))))
        except BadSignature:
            return None


class SessionIdMiddleware:
    """Gives each session an id, and assigns it anew on every request so that the cookie is sent again."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request with `session["session_id"]` set."""
        session = scope.get("session")
        if session is not None:
            with_id(session)
        await self.app(scope, receive, send)


def with_id(session: dict[str, Any]) -> None:
    """Give `session` an id, or the one that it has, in a way that sends its cookie."""
    session[SESSION_ID_KEY] = session.get(SESSION_ID_KEY) or _new_id()


def _new_id() -> str:
    """Return a random UUID, version 4, as text."""
    digits = os.urandom(16).hex()
    third, fourth = digits[13:16], _VARIANTS[digits[16]] + digits[17:20]
    return f"{digits[:8]}-{digits[8:12]}-4{third}-{fourth}-{digits[20:]}"


def install_sessions(app: FastAPI, key: str) -> None:
    """Put cookie sessions on `app`; `key` is both the cookie's name and its signing secret."""
    app.add_middleware(SessionIdMiddleware)
    app.add_middleware(SignedSessions, secret_key=key, session_cookie=key)
