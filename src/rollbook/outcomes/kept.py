"""Whether a reply's own text may stand in a line of results, with our keys appended to it.

Rules:
* It may when it is one strict JSON object on one line, in UTF-8, compact, with no key twice at its top and none that is
  the collector's; every other reply is decoded and written anew.
* Compact is told by adding up: the keys and the values of an object, with what stands between them, are its whole text.
  A key that is there twice, one with an escape, and white space all leave a difference.
* Only the top is read. Numbers there are finite; deeper, a number is JSON whatever its size.

Source: collection.md §1.6, §4.1.
"""

from collections.abc import Mapping
from typing import Final

import msgspec

from rollbook.records.keys import COLLECTOR_STAMPS
from rollbook.records.nesting import not_too_deep

Top = Mapping[str, msgspec.Raw]
"""The values at the top of an object, unread."""

_TOP: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])
_AROUND_A_PAIR: Final = 4
"""Two quotes, a colon, and a comma or, at the end, a brace."""
_HOLDERS: Final = b'{["'
_REFUSED: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


def standing_text(body: bytes) -> Top | None:
    """Return what stands at the top of `body` when it needs nothing but our keys to be a line, else None."""
    if b"\n" in body or b"\r" in body or not _is_utf8(body):
        return None
    try:
        top = _TOP.decode(not_too_deep(body))
        if not top or _told(top) != len(body) or _has_ours(top):
            return None
        for value in top.values():
            if memoryview(value)[0] not in _HOLDERS:
                msgspec.json.decode(value)
    except _REFUSED:
        return None
    return top


def _is_utf8(body: bytes) -> bool:
    try:
        return body.isascii() or bool(body.decode())
    except UnicodeDecodeError:
        return False


def _has_ours(top: Top) -> bool:
    return not COLLECTOR_STAMPS.isdisjoint(top) or any(key.startswith("_ng_") for key in top)


def _told(top: Top) -> int:
    return 1 + sum(len(memoryview(value)) + len(key.encode()) + _AROUND_A_PAIR for key, value in top.items())
