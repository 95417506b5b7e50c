"""One row of a file, read in chunks; of a very large one, the values that nobody asked for are never kept.

Rules:
* Only keys of the row itself are matched, whichever way they are written; the same name further in is copied.
* What is copied is copied byte for byte, so that a parser sees the faults of the row; of a value left out only its
  end is looked for.
* Memory follows what is kept, not what is read; time follows the bytes, not their number of braces and escapes.
* A line without its newline was not committed and is no row.

Source: collection.md §5.4.1, §21.3 (20); case RC-14.
"""

import json
import re
from itertools import accumulate
from typing import BinaryIO, Final

import msgspec

from rollbook.records.json_values import JsonObject
from rollbook.records.nesting import not_too_deep

PROJECTED_ROW_BYTES: Final = 64 << 20
"""How many bytes a row may have and still be parsed as a whole."""

CHUNK_BYTES: Final = 1 << 20
BOM: Final = b"\xef\xbb\xbf"
UNREADABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What `read_row` raises for a line that is no JSON object."""

_QUOTE, _BACKSLASH, _COMMA, _COLON = b'"\\,:'
_OPENING: Final = frozenset(b"{[")
_CLOSING: Final = frozenset(b"}]")

_STRUCTURE: Final = re.compile(rb'["{}\[\],:]')
_NON_SPACE: Final = re.compile(rb"[^ \t\r\n]")
_STRING_REST: Final = re.compile(rb'[^"\\]*+(?:\\.[^"\\]*+)*+', re.DOTALL)
_NESTED_RUN: Final = re.compile(rb'[^"{}\[\]]*+')
_NEITHER_QUOTES_NOR_BRACKETS: Final = bytes(set(range(256)) - set(b'"{}[]'))
_TURNS: Final = dict.fromkeys(_OPENING, 1) | dict.fromkeys(_CLOSING, -1)

_FIRST_BLOCK: Final = 1 << 9
_LARGEST_BLOCK: Final = 1 << 16

_ROW: Final = msgspec.json.Decoder(JsonObject)


class TopLevelProjector:
    """Copies one JSON object that is fed in chunks, with null in the place of the values of `skip_keys`."""

    __slots__ = (
        "_block",
        "_depth",
        "_escaped",
        "_expects_key",
        "_from",
        "_in_string",
        "_kept",
        "_key",
        "_reading_key",
        "_saw_value",
        "_skip",
        "_skipping",
    )

    def __init__(self, skip_keys: frozenset[str]) -> None:
        self._skip = frozenset(key.encode(errors="surrogatepass") for key in skip_keys)
        self._kept = bytearray()
        self._from = 0
        self._depth = 0
        self._block = _FIRST_BLOCK
        self._in_string = self._escaped = False
        self._expects_key = self._reading_key = False
        self._key = bytearray()
        self._skipping = self._saw_value = False

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes of the object; a chunk may end anywhere."""
        self._from, at = 0, 0
        while at < len(chunk):
            if self._depth > 1 or self._in_string:
                at = self._further_in_value(chunk, at)
            else:
                at = self._after_structure(chunk, at)
        self._keep(chunk, at)

    def result(self) -> bytes:
        """Return the copy."""
        return bytes(self._kept)

    def _keep(self, chunk: bytes, end: int) -> None:
        """Copy what was passed since the last turn, or note that there was something to leave out."""
        if not self._skipping:
            self._kept += memoryview(chunk)[self._from : end]
        elif not self._saw_value:
            self._saw_value = _NON_SPACE.search(chunk, self._from, end) is not None
        self._from = end

    def _further_in_value(self, chunk: bytes, at: int) -> int:
        """Jump over blocks, each larger than the last, and walk through the one in which the value ends."""
        end = min(len(chunk), at + self._block)
        if not self._reading_key and at < end:
            if self._jump(chunk, at, end):
                self._block = min(2 * self._block, _LARGEST_BLOCK)
                return end
            self._block = 0
        return self._after_string(chunk, at) if self._in_string else self._after_nested(chunk, at)

    def _jump(self, chunk: bytes, at: int, end: int) -> bool:
        """Account for a block at once, and say so; a block in which the value may end is left as it is."""
        text = chunk[at + self._escaped : end].replace(b"\\\\", b"").replace(b'\\"', b"")
        parts = text.translate(None, _NEITHER_QUOTES_NOR_BRACKETS).split(b'"')
        outside = b"".join(parts[self._in_string :: 2]).replace(b"{}", b"").replace(b"[]", b"")
        depths = list(accumulate(map(_TURNS.__getitem__, outside), initial=self._depth))
        if min(depths) < 2 and (self._depth > 1 or len(parts) > 1):  # noqa: PLR2004  the row itself is at depth 1
            return False
        self._depth = depths[-1]
        self._escaped = text.endswith(b"\\")
        self._in_string ^= len(parts) % 2 == 0
        return True

    def _after_string(self, chunk: bytes, at: int) -> int:
        end = _end_of(_STRING_REST, chunk, at + self._escaped)
        self._escaped = chunk[end : end + 1] == b"\\"
        if end < len(chunk):
            self._in_string = self._escaped
            end += 1
        if self._reading_key:
            self._key += memoryview(chunk)[at:end]
            self._reading_key = self._in_string
        return end

    def _after_nested(self, chunk: bytes, at: int) -> int:
        end = _end_of(_NESTED_RUN, chunk, at)
        if end == len(chunk):
            return end
        self._turn_at(chunk[end])
        return end + 1

    def _turn_at(self, byte: int) -> None:
        if byte == _QUOTE:
            self._in_string = True
        elif byte in _OPENING:
            self._depth += 1
        else:
            self._depth -= 1

    def _after_structure(self, chunk: bytes, at: int) -> int:
        found = _STRUCTURE.search(chunk, at)
        if found is None:
            return len(chunk)
        at, byte = found.start(), chunk[found.start()]
        self._block = _FIRST_BLOCK
        if byte == _COLON:
            self._begin_value(chunk, at + 1)
        elif byte == _COMMA or byte in _CLOSING:
            self._end_value(chunk, at)
        if byte == _QUOTE and self._expects_key:
            self._key = bytearray()
            self._reading_key = True
        if byte not in {_COLON, _COMMA}:
            self._turn_at(byte)
        self._expects_key = self._depth == 1 and (byte == _COMMA or byte in _OPENING)
        return at + 1

    def _begin_value(self, chunk: bytes, at: int) -> None:
        if not self._skipping and _text_of(self._key) in self._skip:
            self._keep(chunk, at)
            self._skipping, self._saw_value = True, False
        self._key = bytearray()

    def _end_value(self, chunk: bytes, at: int) -> None:
        if not self._skipping:
            return
        self._keep(chunk, at)
        self._kept += b"null" if self._saw_value else b""
        self._skipping = False


def read_row(
    file: BinaryIO, limit: int | None, skip_keys: frozenset[str], projected_above: int = PROJECTED_ROW_BYTES
) -> tuple[JsonObject | None, int]:
    """Read the row at the position of `file`, of which no more than `limit` bytes are read.

    Returns the row and the bytes read for it, newline included. The row is None for a line of white space and for a
    last line without its newline; at the end of the file no bytes are read. A row of more than `projected_above` bytes
    is read with null in the place of its `skip_keys`.

    Raises:
        msgspec.DecodeError, UnicodeDecodeError, RecursionError: the line is no JSON object.

    """
    starts_file = file.tell() == 0
    text, consumed = _line(file, limit, skip_keys, projected_above)
    text = text.removeprefix(BOM).strip() if starts_file else text.strip()
    return (_ROW.decode(not_too_deep(text)) if text else None), consumed


def _line(file: BinaryIO, limit: int | None, skip_keys: frozenset[str], projected_above: int) -> tuple[bytes, int]:
    """Return the line, projected when it is long, and its bytes on disk; an empty one when it was not committed."""
    whole, projector, consumed, part = bytearray(), None, 0, b""
    while not part.endswith(b"\n"):
        part = file.readline(CHUNK_BYTES if limit is None else max(0, min(CHUNK_BYTES, limit - consumed)))
        if not part:
            return b"", consumed
        consumed += len(part)
        if projector is not None:
            projector.feed(part)
            continue
        whole += part
        if skip_keys and consumed > projected_above:
            projector = TopLevelProjector(skip_keys)
            projector.feed(bytes(whole))
            whole.clear()
    return (bytes(whole) if projector is None else projector.result()), consumed


def _end_of(pattern: re.Pattern[bytes], chunk: bytes, at: int) -> int:
    """Return where a pattern that always matches ends."""
    found = pattern.match(chunk, at)
    return at if found is None else found.end()


def _text_of(key: bytearray) -> bytes:
    """Return the bytes of a key's text; `key` is as it was written, with its closing quote."""
    if b"\\" not in key:
        return bytes(key[:-1])
    try:
        return str(json.loads(b'"' + key)).encode(errors="surrogatepass")
    except ValueError:
        return bytes(key[:-1])
