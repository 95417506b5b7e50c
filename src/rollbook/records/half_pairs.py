"""Half of a surrogate pair in text that is no JSON for it: decoders tell it in words that mean something else.

Rules:
* It is told as what it is, with the half that stands there; text with no sign of one costs a look.
"""

import json
import re
from typing import Final

import msgspec

from rollbook.records.nesting import not_too_deep

_SIGN: Final = re.compile(rb"\\u[dD][89a-fA-F]")
_HALF_PAIR: Final = re.compile("[\ud800-\udfff]")


def half_pair_in(text: bytes) -> str | None:
    """Return what to say of half of a surrogate pair in `text`; None where there is none, or `text` is not read."""
    if not _SIGN.search(text):
        return None
    try:
        decoded = json.dumps(json.loads(not_too_deep(text)), ensure_ascii=False)
    except (ValueError, RecursionError, msgspec.DecodeError):
        return None
    half = _HALF_PAIR.search(decoded)
    return f"{half[0]!a} is half of a surrogate pair and no character" if half else None
