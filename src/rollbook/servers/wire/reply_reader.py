"""The bytes of one reply, read as they come.

Rules:
* A reply is whole by its own account: a declared length, chunks, or the end of the connection. Interim replies are
  passed over. What contradicts itself is no reply.
* What follows a whole reply changes nothing about it, and ends the use of its connection.
* Nothing that a server sends grows without bound: its heads and trailers have 64 KiB, its body what it is given.
* The exchange is told the status as soon as it can be read.

Source: RFC 9112 §4 to §9; RFC 9110 §15.
"""

import math
import re
from functools import lru_cache
from typing import Final

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

from rollbook.records.exchange import Exchange, Phase, Reply
from rollbook.servers.wire.body import Body, Piece, too_large
from rollbook.servers.wire.broken import Broken, Kind

RawHeaders = list[tuple[bytes, bytes]]
HEAD_BYTES: Final = 64 * 1024
_READING: Final = Phase.READING
_INTERIM: Final = 100
_FINAL: Final = 200
_SWITCHED: Final = 101
_WITHOUT_BODY: Final = frozenset({204, 304})
_ADDING_UP: Final = frozenset({"transfer-encoding", "content-encoding"})
_IDLE_SECONDS: Final = re.compile(r"\btimeout\s*=\s*\"?(\d{1,9})", re.IGNORECASE)


class ReplyReader:
    """What has been read of the reply to one request. The `on_…` methods are called by the parser.

    `raw` is given the headers as they came, of which a reply keeps one of each name.
    """

    done = False
    _head_left = HEAD_BYTES
    _dry = 0
    _moved = False
    _interim = False
    _framed = False
    _until_close = False
    _reusable = False
    _to_come: int | None = None
    _fault: Broken | None = None
    _only = b""
    _body: Body | None = None

    def __init__(self, exchange: Exchange, limit: int, raw: RawHeaders | None = None) -> None:
        self._exchange = exchange
        self._raw = raw
        self._limit = limit
        self._headers: dict[str, str] = {}
        self._parser: HttpResponseParser | None = HttpResponseParser(self)

    @property
    def idle_seconds(self) -> float:
        """How long the connection may lie idle after this reply: infinity if nothing is said, 0 for not at all."""
        if not (self.done and self._reusable):
            return 0.0
        told = self._headers.get("keep-alive")
        found = _IDLE_SECONDS.search(told) if told else None
        return math.inf if found is None else float(found[1])

    def feed(self, data: Piece) -> Reply | None:
        """Take the next bytes, which the caller may use for others afterwards; return the reply once it is whole.

        Raises:
            Broken: this is no reply, or it is above a bound.

        """
        parser = self._parser
        if parser is None:
            self._take(data)
        else:
            try:
                parser.feed_data(data)
            except (HttpParserError, HttpParserUpgrade) as error:
                self._stumbled(parser, error)
            if not self.done:
                self._go_on(parser, len(data))
        return self._whole() if self.done else None

    def _stumbled(self, parser: HttpResponseParser, error: Exception) -> None:
        self._reusable = False
        if not self.done:
            self._note_status(parser.get_status_code())
            raise self._fault or Broken(Kind.NO_HTTP, f"what came back is no HTTP: {error}") from error

    def _go_on(self, parser: HttpResponseParser, read: int) -> None:
        """Prepare for more of what is not whole yet."""
        if not self._framed:
            self._note_status(parser.get_status_code())
        elif self._to_come is not None:
            self._parser = None  # the rest is body alone, which a parser would only copy
        self._dry = 0 if self._moved else self._dry + read
        self._moved = False
        if self._dry > HEAD_BYTES:
            raise _too_long_a_head()

    def _take(self, data: Piece) -> None:
        to_come = self._to_come or 0
        if len(data) > to_come:
            self._reusable = False
            data = data[:to_come]
        self._to_come = to_come - len(data)
        self._gather(data)
        self.done = self._to_come == 0

    def _gather(self, piece: Piece) -> None:
        if self._body is None:
            self._body = Body(self._limit)
        self._body.add(piece)

    def _whole(self) -> Reply:
        self._parser = None
        body = self._only if self._body is None else self._body.value()
        return Reply(self._exchange.status or 0, body, self._headers)

    def end(self, error: Exception | None) -> Reply:
        """Return the reply that the end of the connection makes whole; `error` is what ended it, if anything did.

        Raises:
            Broken: the end is no part of the reply.

        """
        if self._until_close and error is None:
            self.done = True
            return self._whole()
        if self._framed:
            raise Broken(Kind.CUT_SHORT, f"the reply broke off: {error or 'the server closed the connection'}")
        if error is not None:
            raise Broken(Kind.RESET, str(error) or type(error).__name__)
        where = "without a reply" if self._exchange.status is None else "in the head of its reply"
        raise Broken(Kind.DISCONNECTED, f"the server closed the connection {where}")

    def release(self) -> None:
        """Let go of the parser, which holds on to this reader."""
        self._parser = None

    def on_message_begin(self) -> None:
        """A reply begins, or what follows one."""
        if self.done:
            raise self._refused("there is more than one reply")

    def _note_status(self, status: int) -> None:
        if status >= _FINAL and self._exchange.status is None:
            self._exchange.status = status
            self._exchange.enter(_READING)

    def on_header(self, name: bytes, value: bytes) -> None:
        """One header of a head, or of a trailer, which says nothing that we need."""
        self._head_left -= len(name) + len(value)
        if self._head_left < 0:
            self._fault = _too_long_a_head()
            raise self._fault
        if self._framed:
            return
        if self._raw is not None:
            self._raw.append((name, value))
        key, said = _key(name), value.decode("utf-8", "surrogateescape")
        if key in _ADDING_UP and key in self._headers:
            said = f"{self._headers[key]}, {said}"
        self._headers[key] = said

    def on_headers_complete(self) -> None:
        """A head is whole: it says where the reply ends."""
        parser = self._parser
        status = 0 if parser is None else parser.get_status_code()
        if status < _FINAL or parser is None:
            self._interim = True
            if status < _INTERIM or status == _SWITCHED:
                raise self._refused(f"status {status} is no answer to what was asked")
            return
        self._note_status(status)
        self._framed = self._moved = True
        self._reusable = parser.should_keep_alive() and parser.get_http_version() == "1.1"
        headers = self._headers
        if status in _WITHOUT_BODY:
            self._reusable = (
                self._reusable and "transfer-encoding" not in headers and headers.get("content-length", "0") == "0"
            )
            self.done = True
        elif "content-length" in headers and "content-encoding" not in headers:
            self._expect(int(headers["content-length"]))
        else:
            self._read_unusual_framing()

    def _expect(self, size: int) -> None:
        self._to_come = size
        if size > self._limit:
            self._fault = too_large(f"{size} bytes", self._limit)
            raise self._fault

    def _read_unusual_framing(self) -> None:
        self._body = Body(self._limit)
        length, coding = self._headers.get("content-length"), self._headers.get("transfer-encoding")
        encoding = self._headers.get("content-encoding", "")
        if not self._body.decode(encoding):
            self._fault = Broken(Kind.UNKNOWN_ENCODING, f"the reply is encoded as {encoding!r}, which nobody asked for")
            raise self._fault
        if length is not None:
            self._expect(int(length))
        elif coding is None:
            self._until_close = True
        elif coding.strip().lower() != "chunked":
            raise self._refused(f"the reply comes as {coding!r}, which nobody asked for")

    def on_body(self, piece: bytes) -> None:
        """Some of the body."""
        if self.done or self._interim:
            raise self._refused("there is a body where none can be")
        self._moved = True
        if self._to_come is not None:
            self._to_come -= len(piece)
            if self._to_come == 0 and self._body is None:
                self._only = piece
                return
        try:
            self._gather(piece)
        except Broken as fault:
            self._fault = fault
            raise

    def on_message_complete(self) -> None:
        """A reply is whole, be it an interim one."""
        if self._interim:
            self._interim = False
            self._headers.clear()
            if self._raw is not None:
                self._raw.clear()
        else:
            self.done = True

    def _refused(self, said: str) -> Broken:
        self._fault = Broken(Kind.NO_HTTP, said)
        return self._fault


@lru_cache(maxsize=256)
def _key(name: bytes) -> str:
    return name.decode("latin-1").lower()


def _too_long_a_head() -> Broken:
    return Broken(Kind.NO_HTTP, f"the head of the reply is longer than {HEAD_BYTES // 1024} KiB")
