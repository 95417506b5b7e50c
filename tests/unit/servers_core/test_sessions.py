"""Session cookies are those of Starlette and itsdangerous, whoever signs and whoever reads."""

import json
import time
from base64 import b64decode, b64encode
from uuid import RFC_4122, UUID

import pytest
from itsdangerous import TimestampSigner
from starlette.responses import Response

from rollbook.servers.kinds.agent_server_cookies import set_cookies
from rollbook.servers.sessions import SignedSessions, with_id

KEY = "Server___it"
SESSIONS = [
    {"session_id": "0d0c9a2e-41de-4b0a-9a35-0f2b7e6c1d11"},
    {"session_id": 'a "quoted" one'},
    {"session_id": "x", "agent_session_id": "agent-session-1"},
    {"session_id": "é"},
]


async def nothing(_scope, _receive, _send):
    raise AssertionError


def sessions() -> SignedSessions:
    return SignedSessions(nothing, KEY, KEY)


@pytest.mark.parametrize("session", SESSIONS)
def test_a_cookie_is_signed_as_itsdangerous_signs(session):
    (_, (name, cookie)) = sessions().closed([], session, came=False)
    value = cookie.decode().partition("=")[2].partition(";")[0].encode()
    opened = TimestampSigner(KEY).unsign(value, max_age=60)
    assert (name, b64decode(opened)) == (b"set-cookie", json.dumps(session).encode())


@pytest.mark.parametrize("session", SESSIONS)
def test_a_cookie_that_itsdangerous_signed_is_read(session):
    value = TimestampSigner(KEY).sign(b64encode(json.dumps(session).encode()))
    scope, cookies = {}, b"other=1; " + KEY.encode() + b"=" + value
    assert sessions().opened(scope, cookies)
    assert scope["session"] == session


@pytest.mark.parametrize("signer", [TimestampSigner("another key"), TimestampSigner(KEY, salt="other")])
def test_a_cookie_under_another_key_opens_a_new_session(signer):
    value = signer.sign(b64encode(json.dumps(SESSIONS[0]).encode()))
    scope, cookies = {}, KEY.encode() + b"=" + value
    assert not sessions().opened(scope, cookies)
    assert set(scope["session"]) == {"session_id"}
    assert scope["session"] != SESSIONS[0]


def aged(seconds: int) -> bytes:
    """A cookie that was signed so long ago; negative in the future."""
    signer = TimestampSigner(KEY)
    signer.get_timestamp = lambda: int(time.time()) - seconds
    return signer.sign(b64encode(json.dumps(SESSIONS[0]).encode()))


@pytest.mark.parametrize(("seconds", "held"), [(0, True), (13 * 86_400, True), (15 * 86_400, False), (-9, False)])
def test_a_cookie_is_read_for_fourteen_days(seconds, held):
    value = aged(seconds)
    assert sessions().opened({}, KEY.encode() + b"=" + value) is held


@pytest.mark.parametrize(
    "value", [b"", b".", b"..", b"a.b.c", aged(0)[:-1], b"x" + aged(0), aged(0).replace(b".", b"")]
)
def test_a_cookie_that_is_broken_opens_a_new_session(value):
    assert not sessions().opened({}, KEY.encode() + b"=" + value)


def test_a_session_without_an_id_is_given_a_random_uuid():
    given = {}
    with_id(given)
    found = UUID(given["session_id"])
    assert (str(found), found.version, found.variant) == (given["session_id"], 4, RFC_4122)


@pytest.mark.parametrize(
    "jar", [{"Server___it": "eyJh.b_c-D"}, {"a": "with space"}, {"b": "a=b"}, {"c": ""}, {"d": "é"}]
)
def test_a_jars_cookies_are_put_on_a_reply_as_starlette_puts_them(jar):
    ours, theirs = Response(), Response()
    set_cookies(ours, jar)
    for name, value in jar.items():
        theirs.set_cookie(name, value)
    assert ours.raw_headers == theirs.raw_headers


def test_a_cookie_that_was_given_out_names_its_session_until_it_is_changed():
    ours = sessions()
    (_, (_, cookie)) = ours.closed([], SESSIONS[0], came=False)
    value = cookie.partition(b";")[0]
    for changed, is_known in ((value, True), (value[:-1] + b"!", False), (value + b"x", False), (b"x" + value, False)):
        scope, cookies = {}, b"other=1; " + changed
        assert ours.opened(scope, cookies) is is_known
        assert (scope["session"] == SESSIONS[0]) is is_known


def test_sessions_are_known_however_many_are_given_out_within_a_minute():
    signed, values = sessions(), []
    for number in range(6000):
        (_, (_, cookie)) = signed.closed([], {"session_id": f"{number:x}"}, came=False)
        values.append(cookie.partition(b";")[0])
    for number in (0, 3000, 5999):
        scope = {}
        assert signed.opened(scope, values[number])
        assert scope["session"] == {"session_id": f"{number:x}"}
