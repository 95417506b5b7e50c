"""Whether an answer says what is expected, in any of the ways in which it may be written.

Rules:
* What is expected may be said without its article, its brackets or their content, its last punctuation, its points and
  commas; with words for small figures and figures for words; with "and" for "&"; with spaces for hyphens.
* A way of writing that is shorter than three letters is none, unless it is what is expected itself.
* Loosely, one of the ways stands anywhere in the answer. Strictly, a short one stands as words of its own, and a long
  answer says it near the beginning.

Source: the comparison of the closed-book HotpotQA benchmark in NeMo Skills.
"""

import re
from collections.abc import Iterator
from itertools import chain
from typing import Final

SHORTEST: Final = 3
SHORT: Final = 4
LONG_ANSWER: Final = 80
LATEST_START: Final = 40

_MARKS: Final = str.maketrans(
    {"\u2018": "'", "\u2019": "'", "\u201c": '"', "\u201d": '"', "\u2013": "-", "\u2014": "-"}
)
_ARTICLE: Final = re.compile(r"(?:a|an|the) ")
_BRACKETS: Final = re.compile(r"\(([^()]*)\)")
_THOUSANDS: Final = re.compile(r"(?<=\d),(?=\d{3}(?:\D|$))")
_NUMBERS: Final = dict(
    enumerate(
        "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "  # noqa: SIM905  a sentence of numbers reads better than twenty quotes
        "eighteen nineteen twenty".split(),
        start=1,
    )
)
_ORDINALS: Final = {"1st": "first", "2nd": "second", "3rd": "third", "4th": "fourth", "5th": "fifth"}
_WORDS: Final = {str(number): word for number, word in _NUMBERS.items()} | _ORDINALS
_OTHER_WAY: Final = _WORDS | {word: figure for figure, word in _WORDS.items()}


def is_said(answer: str, expected: str) -> bool:
    """Return whether an answer says what is expected, loosely."""
    text = plain(answer)
    return any(way in text for way in ways(expected))


def is_said_strictly(answer: str, expected: str) -> bool:
    """Return whether an answer says what is expected, strictly."""
    text = plain(answer)
    return any(_stands(way, text) for way in ways(expected))


def plain(text: str) -> str:
    """Return a text in small letters, with plain quotes and dashes, and single spaces."""
    return " ".join(text.translate(_MARKS).lower().split())


def ways(expected: str) -> list[str]:
    """Return the ways of writing what is expected, itself first."""
    itself = plain(expected)
    if not itself:
        return []
    bare = _ARTICLE.sub("", itself, count=1)
    found = (" ".join(way.split()) for way in chain(_written_otherwise(itself), [bare], _written_otherwise(bare)))
    longer = [way for way in found if len(way) >= SHORTEST]
    return list(dict.fromkeys([itself, *longer, *filter(None, [_OTHER_WAY.get(itself)])]))


def _written_otherwise(text: str) -> Iterator[str]:
    yield _BRACKETS.sub(" ", text)
    yield _BRACKETS.sub(r"\1", text)
    yield from _BRACKETS.findall(text)
    yield text.rstrip(".,;:!?-")
    yield text.strip('"')
    yield text.replace(".", "")
    yield _THOUSANDS.sub("", text)
    yield text.replace(" & ", " and ")
    yield text.replace(" and ", " & ")
    yield text.replace("-", " ")


def _stands(way: str, text: str) -> bool:
    pattern = re.escape(way)
    if len(way) <= SHORT:
        pattern = rf"(?<!\w){pattern}(?!\w)"
    found = re.search(pattern, text)
    return found is not None and (len(text) <= LONG_ANSWER or found.start() <= LATEST_START)
