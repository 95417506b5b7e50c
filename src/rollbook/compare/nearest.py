"""What a name that is not there was meant to be.

Rules:
* A guess is asked, never made.
"""

from collections.abc import Iterable
from difflib import get_close_matches


def meant(wrong: str, known: Iterable[str]) -> str:
    """Return the question whether the nearest of the `known` names was meant, to follow a statement; empty if none."""
    close = get_close_matches(wrong, sorted(known), n=1)
    return f"; did you mean {close[0]}?" if close else ""
