"""What a server does with a request, and what is made of it: one row an observation."""

import gzip
import zlib

import pytest

from rollbook.records.exchange import SendFailed
from rollbook.records.failure_kinds import Delivery
from rollbook.servers.wire.body import Body
from unit.servers_wire.scripted import AT_ONCE, CLOSE, HOLD, OK, RESET, Scripted, Watched, posting

LIMIT = 100_000
pytestmark = pytest.mark.filterwarnings("error::ResourceWarning", "ignore:Overriding the .event_loop_policy")


def reply(body, *headers, status="200 OK", length=True):
    lines = [f"HTTP/1.1 {status}", *headers, *([f"Content-Length: {len(body)}"] if length else [])]
    return "\r\n".join([*lines, "", ""]).encode() + body


def chunked(*chunks, trailer=b""):
    body = b"".join(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks)
    return reply(b"", "Transfer-Encoding: chunked", length=False) + body + b"0\r\n" + trailer + b"\r\n"


def deflated(body):
    squeeze = zlib.compressobj(wbits=-15)
    return squeeze.compress(body) + squeeze.flush()


TEXT = b'{"reward": 1.0}' * 1000
NEVER_ENDING = reply(b"", "Transfer-Encoding: chunked", length=False)
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
HINTS = b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"
NO_CONTENT = reply(b"", status="204 No Content", length=False)

WHOLE = {
    "a declared length": (OK, HOLD, 200, b"{}"),
    "an empty 200": (reply(b""), HOLD, 200, b""),
    "no phrase": (b"HTTP/1.1 200\r\nContent-Length: 1\r\n\r\n1", HOLD, 200, b"1"),
    "an unknown status": (reply(b"x", status="799 Odd"), HOLD, 799, b"x"),
    "an error": (reply(b"no", status="500 No"), CLOSE, 500, b"no"),
    "100 and 103 before it": (CONTINUE + CONTINUE + HINTS + OK, HOLD, 200, b"{}"),
    "headers before it": (
        b"HTTP/1.1 103 Early Hints\r\nContent-Encoding: br\r\nContent-Length: 5\r\n\r\n" + OK,
        HOLD,
        200,
        b"{}",
    ),
    "a reset after its last byte": (OK, RESET, 200, b"{}"),
    "no content": (NO_CONTENT, HOLD, 204, b""),
    "not modified, with a length": (b"HTTP/1.1 304 No\r\nContent-Length: 9\r\n\r\n", HOLD, 304, b""),
    "a redirect": (reply(b"", "Location: /elsewhere", status="301 Moved"), HOLD, 301, b""),
    "chunks": (chunked(TEXT, b"x"), HOLD, 200, TEXT + b"x"),
    "chunks and a trailer": (chunked(b"a", b"b", trailer=b"Digest: x\r\n"), HOLD, 200, b"ab"),
    "until the close": (reply(TEXT, length=False), CLOSE, 200, TEXT),
    "until the close of HTTP/1.0": (b"HTTP/1.0 200 OK\r\n\r\nabc", CLOSE, 200, b"abc"),
    "more than it declares": (OK + b"more", HOLD, 200, b"{}"),
    "more than it declares, of much": (reply(TEXT) + b"more", HOLD, 200, TEXT),
    "a second reply": (OK + OK, HOLD, 200, b"{}"),
    "half of a second reply": (OK + b"HTTP/1.1 5", HOLD, 200, b"{}"),
    "junk after a last reply": (reply(b"{}", "Connection: close") + b"junk", CLOSE, 200, b"{}"),
    "gzip": (reply(gzip.compress(TEXT), "Content-Encoding: gzip"), HOLD, 200, TEXT),
    "gzip until the close": (reply(gzip.compress(TEXT), "Content-Encoding: GZIP", length=False), CLOSE, 200, TEXT),
    "gzip of two members": (
        reply(gzip.compress(b"a") + gzip.compress(b"b"), "Content-Encoding: gzip"),
        HOLD,
        200,
        b"ab",
    ),
    "gzip of nothing": (reply(b"", "Content-Encoding: gzip"), HOLD, 200, b""),
    "zlib": (reply(zlib.compress(TEXT), "Content-Encoding: deflate"), HOLD, 200, TEXT),
    "bare deflate": (reply(deflated(TEXT), "Content-Encoding: deflate"), HOLD, 200, TEXT),
    "as it is": (reply(b"x", "Content-Encoding: identity"), HOLD, 200, b"x"),
    "just as much as may be": (reply(b"x" * LIMIT), HOLD, 200, b"x" * LIMIT),
}

DELIVERED, POSSIBLY = Delivery.DELIVERED, Delivery.POSSIBLY_DELIVERED
DISCONNECTED, CUT, NO_HTTP, LARGE = (
    "ServerDisconnectedError",
    "ClientPayloadError",
    "ClientResponseError",
    "ReplyTooLarge",
)
BROKEN = {
    "nothing": (b"", CLOSE, DISCONNECTED, POSSIBLY, None),
    "half a status": (b"HTTP/1.1 20", CLOSE, DISCONNECTED, POSSIBLY, None),
    "an interim reply alone": (CONTINUE, CLOSE, DISCONNECTED, POSSIBLY, None),
    "half a head": (b"HTTP/1.1 200 OK\r\nContent-Le", CLOSE, DISCONNECTED, DELIVERED, 200),
    "half a head of a gateway": (b"HTTP/1.1 502 Bad\r\nContent-Le", CLOSE, DISCONNECTED, POSSIBLY, 502),
    "half a body": (reply(b"{}")[:-1], CLOSE, CUT, DELIVERED, 200),
    "no body where one is declared": (reply(b"{}")[:-2], CLOSE, CUT, DELIVERED, 200),
    "half a body of a gateway": (reply(b"{}", status="504 Late")[:-1], CLOSE, CUT, POSSIBLY, 504),
    "half of much": (reply(TEXT)[:-1], CLOSE, CUT, DELIVERED, 200),
    "half a chunk": (chunked(b"abc")[:-7], CLOSE, CUT, DELIVERED, 200),
    "no last chunk": (chunked(b"abc")[:-5], CLOSE, CUT, DELIVERED, 200),
    "half a body, and a reset": (reply(b"{}")[:-1], RESET, CUT, DELIVERED, 200),
    "until the close, and a reset": (reply(b"{}", length=False), RESET, CUT, DELIVERED, 200),
    "garbage": (b"no HTTP at all\r\n\r\n", HOLD, NO_HTTP, POSSIBLY, None),
    "an alert of TLS": (b"\x15\x03\x01\x00\x02\x02\x16", CLOSE, NO_HTTP, POSSIBLY, None),
    "another protocol": (b"HTTP/2 200 OK\r\n\r\n", HOLD, NO_HTTP, POSSIBLY, None),
    "a status that is none": (b"HTTP/1.1 099 No\r\n\r\n", HOLD, NO_HTTP, POSSIBLY, None),
    "an upgrade": (b"HTTP/1.1 101 S\r\nUpgrade: h2c\r\nConnection: upgrade\r\n\r\n", HOLD, NO_HTTP, POSSIBLY, None),
    "two lengths": (reply(b"{}", "Content-Length: 2"), HOLD, NO_HTTP, DELIVERED, 200),
    "a length and chunks": (reply(b"{}", "Transfer-Encoding: chunked"), HOLD, NO_HTTP, DELIVERED, 200),
    "a length that is none": (reply(b"", "Content-Length: +2", length=False), HOLD, NO_HTTP, DELIVERED, 200),
    "an unknown transfer coding": (reply(b"", "Transfer-Encoding: gzip", length=False), HOLD, NO_HTTP, DELIVERED, 200),
    "chunks twice": (reply(b"", "Transfer-Encoding: gzip, chunked", length=False), HOLD, NO_HTTP, DELIVERED, 200),
    "a chunk that is none": (NEVER_ENDING + b"zz\r\n", HOLD, NO_HTTP, DELIVERED, 200),
    "a long head": (reply(b"", f"X: {'x' * 70_000}"), HOLD, NO_HTTP, DELIVERED, 200),
    "a head that does not end": (b"HTTP/1.1 200 OK\r\nX: " + b"x" * 300_000, HOLD, NO_HTTP, DELIVERED, 200),
    "many short headers": (b"HTTP/1.1 200 OK\r\n" + b"X: x\r\n" * 40_000, HOLD, NO_HTTP, DELIVERED, 200),
    "interim replies without end": (CONTINUE * 20_000, HOLD, NO_HTTP, POSSIBLY, None),
    "a trailer without end": (NEVER_ENDING + b"0\r\nX: " + b"x" * 300_000, HOLD, NO_HTTP, DELIVERED, 200),
    "an encoding that nobody asked for": (
        reply(b"{}", "Content-Encoding: br"),
        HOLD,
        "ContentEncodingError",
        DELIVERED,
        200,
    ),
    "gzip twice": (
        reply(b"{}", "Content-Encoding: gzip", "Content-Encoding: gzip"),
        HOLD,
        "ContentEncodingError",
        DELIVERED,
        200,
    ),
    "half of a gzip": (reply(gzip.compress(TEXT)[:-9], "Content-Encoding: gzip"), HOLD, CUT, DELIVERED, 200),
    "no gzip at all": (reply(TEXT, "Content-Encoding: gzip"), HOLD, "ContentEncodingError", DELIVERED, 200),
    "junk after a gzip": (
        reply(gzip.compress(TEXT) + b"\x1fjunk", "Content-Encoding: gzip"),
        HOLD,
        "ContentEncodingError",
        DELIVERED,
        200,
    ),
    "a gzip bomb": (reply(gzip.compress(bytes(20_000_000)), "Content-Encoding: gzip"), HOLD, LARGE, DELIVERED, 200),
    "a declared size above the bound": (
        reply(b"", "Content-Length: 100001", length=False),
        HOLD,
        LARGE,
        DELIVERED,
        200,
    ),
    "chunks above the bound": (chunked(b"x" * LIMIT, b"x"), HOLD, LARGE, DELIVERED, 200),
    "more than the bound until the close": (reply(b"x" * (LIMIT + 1), length=False), HOLD, LARGE, DELIVERED, 200),
}


@pytest.mark.parametrize("piece", [1 << 30, 7], ids=["at once", "bit by bit"])
@pytest.mark.parametrize(("says", "then", "status", "body"), WHOLE.values(), ids=WHOLE)
async def test_a_whole_reply_is_the_answer_to_one_request(says, then, status, body, piece):
    server = Scripted(says, then, max(piece, len(says) // 500) if piece < LIMIT else piece)
    async with server.running() as url, posting(max_reply_bytes=LIMIT) as poster:
        answer = await poster.post("colours", url + "/run", b"{}", Watched())
    assert (answer.status, answer.body) == (status, body)
    assert len(server.requests) == 1
    await server.all_closed()


@pytest.mark.parametrize("piece", [1 << 30, 7], ids=["at once", "bit by bit"])
@pytest.mark.parametrize("row", BROKEN.values(), ids=BROKEN)
async def test_a_broken_reply_says_what_was_seen_and_nothing_is_sent_again(row, piece):
    says, then, kind, delivery, status = row
    server = Scripted(says, then, max(piece, len(says) // 500) if piece < LIMIT else piece)
    async with server.running() as url, posting(max_reply_bytes=LIMIT) as poster:
        with pytest.raises(SendFailed, match=f"^colours at {url}/run: {kind}: .") as caught:
            await poster.post("colours", url + "/run", b"{}", Watched())
        await server.all_closed()
    assert (caught.value.exception_type, caught.value.delivery, caught.value.status) == (kind, delivery, status)
    assert len(server.requests) == 1


async def test_a_server_that_closes_before_it_reads_may_have_read():
    server = Scripted(then=AT_ONCE)
    async with server.running() as url, posting() as poster:
        with pytest.raises(SendFailed) as caught:
            await poster.post("colours", url, b"{}", Watched())
    assert caught.value.exception_type in {DISCONNECTED, "ClientOSError", "ClientConnectorError"}
    assert (caught.value.delivery is Delivery.NOT_SENT) == (caught.value.exception_type == "ClientConnectorError")
    assert caught.value.status is None
    assert not server.requests


async def test_a_server_that_answers_before_it_has_read_everything_is_heard_and_its_connection_closed():
    server = Scripted(then=HOLD)
    async with server.running() as url, posting() as poster:
        answers = [(await poster.post("colours", url, b"x" * 3_000_000, Watched())).status for _ in range(2)]
    assert answers == [200, 200]
    assert [len(request) > 3_000_000 for request in server.requests] == [True, True]
    await server.all_closed()


def test_where_a_member_of_a_gzip_ends_only_a_little_of_what_follows_is_copied(monkeypatch):
    begun = []

    class Member:
        """An inflater that is kept, to see what it holds in the end."""

        def __init__(self, make):
            self._member = make
            begun.append(self)

        def __getattr__(self, name):
            return getattr(self._member, name)

    make = zlib.decompressobj
    monkeypatch.setattr(zlib, "decompressobj", lambda bits: Member(make(bits)))
    body = Body(LIMIT)
    body.decode("gzip")
    empty = gzip.compress(b"")
    sent = gzip.compress(b"a") + empty * 5000 + gzip.compress(b"b")
    body.add(sent)
    assert (body.value(), len(begun)) == (b"ab", 5002)
    assert max(len(member.unused_data) for member in begun) <= 8192 < len(sent) // 10


@pytest.mark.parametrize("piece", [1, 8191, 8192, 8193, 1 << 30])
def test_a_gzip_may_be_cut_anywhere(piece):
    text = bytes(range(256)) * 300
    sent = gzip.compress(text, 0) + gzip.compress(b"") + gzip.compress(text)
    body = Body(LIMIT * 10)
    body.decode("gzip")
    for at in range(0, len(sent), piece):
        body.add(sent[at : at + piece])
    assert body.value() == text * 2
