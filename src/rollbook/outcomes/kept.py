"""Whether a reply's own text may stand in a line of results, with our keys appended to it.

Rules:
* It may when it is one strict JSON object on one line, in UTF-8, compact, with no key twice at its top and none that is
  the collector's; every other reply is decoded and written anew.
* Compact is told by adding up: the keys and the values of an object, with what stands between them, are its whole text.
  A key that is there twice, one with an escape, and white space all leave a difference.

Source: collection.md §1.6, §4.1.
"""

from collections.abc import Mapping
from typing import Final

import msgspec
import orjson

from rollbook.records.keys import COLLECTOR_STAMPS

_TOP: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])
_AROUND_A_PAIR: Final = 4
"""Two quotes, a colon, and a comma or, at the end, a brace."""


def strict_object(body: bytes) -> dict[str, object] | None:
    """Return what `body` says if it is a strict JSON object on one line, else None."""
    if b"\n" in body or b"\r" in body:
        return None
    try:
        read = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    return read if isinstance(read, dict) else None


def may_stand(body: bytes, payload: Mapping[str, object]) -> bool:
    """Whether `body`, a strict object that reads as `payload`, needs nothing but our keys to be a line."""
    if not payload or not COLLECTOR_STAMPS.isdisjoint(payload):
        return False
    if any(key.startswith("_ng_") for key in payload):
        return False
    try:
        top = _TOP.decode(body)
    except (msgspec.DecodeError, RecursionError):
        return False
    return _told(top) == len(body)


def _told(top: Mapping[str, msgspec.Raw]) -> int:
    return 1 + sum(len(memoryview(raw)) + len(key.encode()) + _AROUND_A_PAIR for key, raw in top.items())
