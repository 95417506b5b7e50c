"""The words that may be guessed, and those that may be sought.

Source: the lists' own notice, data/COPYRIGHT.
"""

from functools import cache
from pathlib import Path
from typing import Final

DATA: Final = Path(__file__).parent / "data"


@cache
def guesses() -> frozenset[str]:
    """Return every word that may be guessed."""
    return frozenset(targets()) | frozenset(_lines("guesses.txt"))


@cache
def targets() -> tuple[str, ...]:
    """Return the words that a row without one of its own may ask for, in order."""
    return _lines("targets.txt")


def _lines(name: str) -> tuple[str, ...]:
    return tuple((DATA / name).read_text(encoding="utf-8").split())
