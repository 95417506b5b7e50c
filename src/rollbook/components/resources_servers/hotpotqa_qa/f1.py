"""Exact match and F1 of two short answers, as HotpotQA's own evaluation counts them.

Rules:
* Compared are words without capitals, articles and ASCII punctuation.
* A yes or a no that the other side does not say is worth nothing.

Source: Yang et al. 2018, "HotpotQA: A Dataset for Diverse, Explainable Multi-hop Question Answering".
"""

import re
import string
from collections import Counter
from typing import Final

_ARTICLES: Final = re.compile(r"\b(?:a|an|the)\b")
_PUNCTUATION: Final = str.maketrans("", "", string.punctuation)
_VERDICTS: Final = frozenset({"yes", "no", "noanswer"})


def words_of(answer: str) -> list[str]:
    """Return the words of an answer that are compared."""
    return _ARTICLES.sub(" ", answer.lower().translate(_PUNCTUATION)).split()


def exact_match(answer: str, expected: str) -> float:
    """Return 1 when both answers have the same words in the same order, else 0."""
    return float(words_of(answer) == words_of(expected))


def f1(answer: str, expected: str) -> float:
    """Return the harmonic mean of the shares of words that each answer has of the other, 0 to 1."""
    given, wanted = words_of(answer), words_of(expected)
    if given != wanted and _VERDICTS & {" ".join(given), " ".join(wanted)}:
        return 0.0
    shared = (Counter(given) & Counter(wanted)).total()
    return 2 * shared / (len(given) + len(wanted)) if shared else 0.0
