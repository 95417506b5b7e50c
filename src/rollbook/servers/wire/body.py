"""The body of a reply, gathered piece by piece under a bound.

Rules:
* The bound holds for what is kept, so for what a compressed body becomes; nothing grows much beyond it.
* A body that came in one piece is that piece; one of several is written together once.
* We ask for no encoding, and undo gzip and deflate where a server chose them; any other is a reply that cannot be read.

Source: RFC 9110 §8.4.
"""

import io
import zlib
from collections.abc import Iterator
from typing import Final

from rollbook.servers.wire.broken import Broken, Kind

Piece = bytes | memoryview
_STEP: Final = 256 * 1024
_SLICE: Final = 8 * 1024
"""What is inflated at once: where a member ends, zlib copies what is left of it."""
_KEPT: Final = 16 * 1024 * 1024
_GZIP_OR_ZLIB: Final = 32 + zlib.MAX_WBITS
_RAW_DEFLATE: Final = -zlib.MAX_WBITS
_ZLIB_METHOD: Final = 8


class Body:
    """At most `limit` bytes."""

    __slots__ = ("_inflating", "_limit", "_only", "_size", "_written")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._size = 0
        self._only = b""
        self._written: io.BytesIO | None = None
        self._inflating: _Inflating | None = None

    def decode(self, encoding: str) -> bool:
        """Undo `encoding`, a `Content-Encoding`, from now on; return False if it is one that is not known here."""
        name = encoding.strip().lower()
        if name in {"gzip", "x-gzip", "deflate"}:
            self._inflating = _Inflating()
        return self._inflating is not None or name in {"", "identity"}

    def add(self, piece: Piece) -> None:
        """Take the next bytes as they came; a view of them is not held on to.

        Raises:
            Broken: the body is above the bound, or cannot be decoded.

        """
        if self._inflating is None:
            self._keep(piece)
            return
        for decoded in self._inflating.pieces(piece):
            self._keep(decoded)

    def _keep(self, piece: Piece) -> None:
        size = self._size + len(piece)
        if size > self._limit:
            raise too_large(f"more than {self._limit} bytes", self._limit)
        if self._size == 0:
            self._only = bytes(piece)
        else:
            if self._written is None:
                self._written = io.BytesIO()
                self._written.write(self._only)
                self._only = b""
            self._written.write(piece)
        self._size = size

    def value(self) -> bytes:
        """Return the whole body.

        Raises:
            Broken: what was compressed ends in the middle.

        """
        if self._inflating is not None and not self._inflating.is_whole:
            raise Broken(Kind.CUT_SHORT, "the compressed reply ends in the middle")
        return self._only if self._written is None else self._written.getvalue()


def keep_freed_memory() -> None:
    """Have what one reply frees kept for the next, up to twice `_KEPT`, rather than given back and asked for again.

    glibc takes a large block that is freed for a sign that such blocks come and go (mallopt(3), M_MMAP_THRESHOLD); a
    page that is asked for anew costs more than what is read into it. Elsewhere this does nothing.
    """
    bytes(_KEPT)


def too_large(found: str, limit: int) -> Broken:
    """Return what it means that a body is above its bound."""
    return Broken(Kind.TOO_LARGE, f"the reply has {found}, and max_reply_bytes is {limit}")


class _Inflating:
    """gzip of any number of members, zlib, or bare deflate."""

    __slots__ = ("_member",)

    def __init__(self) -> None:
        self._member: zlib._Decompress | None = None

    @property
    def is_whole(self) -> bool:
        return self._member is None or self._member.eof

    def pieces(self, data: Piece) -> Iterator[bytes]:
        """Yield what `data` becomes, a step at a time."""
        view = memoryview(data)
        for at in range(0, len(data), _SLICE):
            yield from self._inflated(view[at : at + _SLICE])

    def _inflated(self, data: Piece) -> Iterator[bytes]:
        more = bool(data)
        while more:
            if self._member is None or self._member.eof:
                self._member = _member_that_begins_with(data)
            try:
                piece = self._member.decompress(data, _STEP)
            except zlib.error as error:
                raise Broken(Kind.UNKNOWN_ENCODING, f"the compressed reply cannot be read: {error}") from error
            if piece:
                yield piece
            data = self._member.unused_data if self._member.eof else self._member.unconsumed_tail
            more = bool(data) or (len(piece) == _STEP and not self._member.eof)


def _member_that_begins_with(data: Piece) -> "zlib._Decompress":
    first = data[0]
    is_framed = first == 0x1F or first & 0x0F == _ZLIB_METHOD  # noqa: PLR2004  gzip's magic number
    return zlib.decompressobj(_GZIP_OR_ZLIB if is_framed else _RAW_DEFLATE)
