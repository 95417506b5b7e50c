"""Text from data, made fit for a terminal.

Rules:
* What could move a cursor, colour, ring, hide or reorder text is written as an escape; everything else is unchanged.

Source: case RC-61.
"""

import unicodedata
from typing import Final

_UNFIT: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


def escaped(text: str, keep: str = "") -> str:
    """Return `text` with its control characters, but those in `keep`, written as escapes."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(_escape(character) if _is_unfit(character, keep) else character for character in text)


def _is_unfit(character: str, keep: str) -> bool:
    return character not in keep and unicodedata.category(character) in _UNFIT


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")
