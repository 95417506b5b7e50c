"""How a text is cut into words, sentences and paragraphs, and how counts are compared.

Rules:
* A sentence ends with `.`, `!`, `?` or their like and white space, and not after an abbreviation or an initial.
* No text raises, and the work grows with the text's length alone.

Source: Zhou et al. 2023, "Instruction-Following Evaluation for Large Language Models".
"""

import re
import string
from collections.abc import Callable, Mapping
from typing import Any, Final

Options = Mapping[str, Any]
Check = Callable[[str, Options], bool]

RELATIONS: Final[Mapping[str, Callable[[int, int], bool]]] = {
    "less than": lambda found, wanted: found < wanted,
    "at least": lambda found, wanted: found >= wanted,
    "at most": lambda found, wanted: found <= wanted,
    "more than": lambda found, wanted: found > wanted,
    "exactly": lambda found, wanted: found == wanted,
}
_WORD: Final = re.compile(r"\w+")
_END: Final = re.compile(r"(?<=[.!?\u2026\u3002\uff01\uff1f])[\"')\]\u201d\u2019]*\s+|\n\s*\n")
_NO_END: Final = re.compile(
    r"(?:\b(?:mr|mrs|ms|dr|prof|st|jr|sr|vs|etc|no|fig|e\.g|i\.e|u\.s|a\.m|p\.m)|(?-i:\b[A-Z])|^\s*\d+)\.$",
    re.IGNORECASE,
)
_LONGEST_END: Final = 20
_DIVIDER: Final = re.compile(r"\s?\*\*\*\s?")
_EDGES: Final = string.punctuation + "\u201c\u201d\u2018\u2019\u2026"


def words(text: str) -> list[str]:
    """Return the words of a text, without punctuation."""
    return _WORD.findall(text)


def tokens(text: str) -> list[str]:
    """Return what white space separates, without punctuation at its ends; what is nothing else is left out."""
    return [token for part in text.split() if (token := part.strip(_EDGES))]


def sentences(text: str) -> list[str]:
    """Return the sentences of a text."""
    found: list[str] = []
    begun: list[str] = []
    end = ""
    for part in filter(str.strip, _END.split(text.strip())):
        begun.append(part.rstrip())
        end = f"{end} {begun[-1]}".strip()[-_LONGEST_END:]
        if not _NO_END.search(end):
            found.append(" ".join(begun).strip())
            begun, end = [], ""
    return [*found, " ".join(begun).strip()] if begun else found


def divided(text: str) -> list[str] | None:
    """Return the parts that `***` divides a text into; None when one between two dividers is empty."""
    parts = [part.strip() for part in _DIVIDER.split(text)]
    if not all(parts[1:-1]):
        return None
    return [part for part in parts if part]


def holds(options: Options, found: int, wanted: str, relation: str = "relation") -> bool:
    """Return whether a count relates to the wanted one as the options say.

    Raises:
        KeyError: the options say no number, or a relation that there is not.

    """
    return RELATIONS[options[relation]](found, int(options[wanted]))
