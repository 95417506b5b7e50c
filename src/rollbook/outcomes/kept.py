"""Whether a reply's own text may stand in a line of results, with our keys appended to it.

Rules:
* It may when it is one strict JSON object on one line, in UTF-8, compact, with no key twice at its top and none that is
  the collector's; every other reply is decoded and written anew.
* Text that comes back the same, byte by byte, from being read and written is all of that: a writer of strict JSON has
  written it.
* Other text is compact when it adds up: the keys and the values of an object, with what stands between them, are its
  whole text. A key that is there twice, one with an escape, and white space all leave a difference.
* Every byte of it is read, its values too: what a reader of lines would refuse, a number beyond measure for one, is
  not kept.

Source: collection.md §1.6, §4.1.
"""

import re
from collections.abc import Mapping
from typing import Final

import msgspec
import orjson

from rollbook.records.json_values import JsonObject
from rollbook.records.keys import COLLECTOR_STAMPS

_TOP: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])
_AROUND_A_PAIR: Final = 4
"""Two quotes, a colon, and a comma or, at the end, a brace."""
_ENDS_IN_OURS: Final = re.compile(rb',"_ng_[^}\]]*}')
"""The end of an object from its last key on, where that is one of ours at its top: of a reply that echoes its row."""
_REFUSED: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


def standing_reply(body: bytes) -> JsonObject | None:
    """Return what `body` says when it needs nothing but our keys to be a line, else None."""
    if _ENDS_IN_OURS.fullmatch(body, body.rfind(b',"')):
        return None
    try:
        said = orjson.loads(body)  # refuses what is nested too deep, which a decoder that recurses must not be given
    except orjson.JSONDecodeError:
        return None
    if not isinstance(said, dict) or not said or _has_ours(said):
        return None
    try:
        comes_back = orjson.dumps(said) == body
    except orjson.JSONEncodeError:  # nested deeper than writers write; how deep readers go is not the same everywhere
        return None
    return said if comes_back or _adds_up(body) else None


def _adds_up(body: bytes) -> bool:
    if b"\n" in body or b"\r" in body:
        return False
    try:
        return _told(_TOP.decode(body)) == len(body)
    except _REFUSED:
        return False


def _has_ours(said: JsonObject) -> bool:
    return not COLLECTOR_STAMPS.isdisjoint(said) or any(key.startswith("_ng_") for key in said)


def _told(top: Mapping[str, msgspec.Raw]) -> int:
    return 1 + sum(len(memoryview(value)) + len(key.encode()) + _AROUND_A_PAIR for key, value in top.items())
