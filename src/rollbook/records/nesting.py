"""JSON that is nested beyond measure, told before it is decoded.

Rules:
* How deep is too deep is ours to say: a library in the same process may have raised the interpreter's own limit, and a
  decoder that recurses past the stack ends the process.
* A level takes two bytes, so short text costs nothing; text with few brackets costs a pass over it, and only text with
  many is looked at.
"""

from typing import Final

import msgspec
import orjson

MOST_LEVELS: Final = 1024
"""As deep as `orjson` reads."""
_SHORT: Final = 2 * MOST_LEVELS
_ALL_BUT_OPENING: Final = bytes(set(range(256)) - set(b"[{"))


def not_too_deep(text: bytes) -> bytes:
    """Return `text`, a JSON document or not.

    Raises:
        msgspec.DecodeError: it is nested deeper than `MOST_LEVELS`.

    """
    if len(text) > _SHORT and len(text.translate(None, _ALL_BUT_OPENING)) > MOST_LEVELS:
        try:
            orjson.loads(text)
        except orjson.JSONDecodeError as error:
            if "limit exceeded" in str(error):
                raise msgspec.DecodeError(f"nested deeper than {MOST_LEVELS} levels") from None
    return text
