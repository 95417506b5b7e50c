"""Whether a reply's own text may stand in a line of results, with our keys appended to it.

Rules:
* It may when it is one strict JSON object on one line, in UTF-8, compact, with no key twice at its top and none that is
  the collector's; every other reply is decoded and written anew.
* Compact is told by adding up: the keys and the values of an object, with what stands between them, are its whole text.
  A key that is there twice, one with an escape, and white space all leave a difference.
* It reads as a whole: what a reader of lines would refuse, a number beyond measure for one, is not kept.

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
_REFUSED: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


def standing_text(body: bytes) -> Top | None:
    """Return what stands at the top of `body` when it needs nothing but our keys to be a line, else None."""
    if b"\n" in body or b"\r" in body:
        return None
    try:
        msgspec.json.decode(not_too_deep(body))
        top = _TOP.decode(body)
    except _REFUSED:
        return None
    return top if top and _told(top) == len(body) and not _has_ours(top) else None


def _has_ours(top: Top) -> bool:
    return not COLLECTOR_STAMPS.isdisjoint(top) or any(key.startswith("_ng_") for key in top)


def _told(top: Top) -> int:
    return 1 + sum(len(memoryview(value)) + len(key.encode()) + _AROUND_A_PAIR for key, value in top.items())
