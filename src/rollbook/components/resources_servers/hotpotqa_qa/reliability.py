"""Whether an expected answer is one that right answers are likely to be written otherwise than.

Rules:
* It is unreliable when it is long, or a name of several words: there are too many ways to spell those.

Source: the closed-book HotpotQA benchmark in NeMo Skills.
"""

from typing import Final

LONGEST: Final = 40
NAME_WORDS: Final = range(3, 7)
FEW_WORDS: Final = 4
ENOUGH: Final = 3
STOPWORDS: Final = frozenset(
    "a an the of in on at to for by with from and or is was are were be it its his her their not as that this".split()  # noqa: SIM905  a list of words
)


def why_unreliable(expected: str) -> str:
    """Return `gt_too_long`, `multi_word_name`, or an empty text for an answer that is reliable."""
    if len(expected) > LONGEST:
        return "gt_too_long"
    words = expected.split()
    telling = sum(word[0].isupper() and word.lower() not in STOPWORDS for word in words)
    enough = len(words) if len(words) <= FEW_WORDS else ENOUGH
    return "multi_word_name" if len(words) in NAME_WORDS and telling >= enough else ""
