"""The letter behind `Answer:` in a text with Markdown, in any of several scripts.

Rules:
* What stands behind the prefix, up to the end of its line, is a payload; the last payload that names one letter wins.
* A payload that opens with a list of letters ("A or B") names none.
* A letter at the start is preferred; otherwise the last capital that stands alone.
* Letters of other scripts count where they stand alone, never inside a word.

Source: servers.md §7.3 (1).
"""

import re
import unicodedata
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from typing import Final

# Runs are taken whole and never given back: tried again from every place, they would make the work quadratic.
_MARKUP: Final = r"[*_]*+"
_GAP: Final = r"[^\S\n]*+"
_MARKS: Final = r"[\W_]*+"
_ANSWER: Final = rf"\banswer{_GAP}{_MARKUP}{_GAP}:"
_FOREIGN: Final = {
    "\u0623": "A",  # Arabic
    "\u0627": "A",
    "\u0628": "B",
    "\u062c": "C",
    "\u062f": "D",
    "\u0985": "A",  # Bengali
    "\u09ac": "B",
    "\u09a1": "C",
    "\u09a2": "D",
}
_STANDING_ALONE: Final = re.compile(rf"(?<![^\W\d_])[{''.join(_FOREIGN)}](?![^\W\d_]|[\u0980-\u09ff\u064b-\u0652])")
_OPENING: Final = re.compile(r"[\W_]*([A-Za-z])(?![^\W_])(?!['\u2019]\w)")
_ONLY: Final = re.compile(r"[\W_]*([A-Za-z])[\W_]*")
_ALONE: Final = re.compile(r"(?<![^\W_])([A-Z])(?![^\W_])(?!['\u2019]\w)")
_SEVERAL: Final = re.compile(
    rf"{_MARKS}(?:(?:either|both)\W++)?[A-Z](?![^\W_])"
    rf"(?:(?=[\W_]*[,/;&+|]){_MARKS}|{_MARKS}\b(?:or|and|and/or)\b{_MARKS})[A-Z](?![^\W_])(?!['\u2019])",
    re.IGNORECASE,
)


def letter_after_prefix(text: str, letters: AbstractSet[str], prefix: str | None = None) -> str | None:
    """Return the letter that `text` gives behind `Answer:` or behind `prefix`; None when it gives none of `letters`."""
    valid = (letter for payload in _payloads(text, prefix) if (letter := _letter(payload, letters)) is not None)
    return _last(valid)


def _payloads(text: str, prefix: str | None) -> Iterator[str]:
    plain = unicodedata.normalize("NFKC", text)
    own = unicodedata.normalize("NFKC", prefix).strip() if prefix else ""
    starts = f"(?:{_ANSWER}|{re.escape(own)})" if own else _ANSWER
    for match in re.finditer(rf"{starts}{_GAP}{_MARKUP}{_GAP}([^\n]*)", plain, re.IGNORECASE):
        yield _STANDING_ALONE.sub(lambda found: _FOREIGN[found.group()], match[1])


def _letter(payload: str, letters: AbstractSet[str]) -> str | None:
    if _SEVERAL.match(payload):
        return None
    only = _ONLY.fullmatch(payload)
    if only:
        return only[1].upper() if only[1].upper() in letters else None
    opening = _OPENING.match(payload)
    if opening and opening[1] in letters:
        return opening[1]
    return _last(match[1] for match in _ALONE.finditer(payload) if match[1] in letters)


def _last(letters: Iterator[str]) -> str | None:
    found = list(letters)
    return found[-1] if found else None
