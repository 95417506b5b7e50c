r"""How an answer is written: in the form that its environment reads, or in one that it cannot read.

Rules:
* The row's own form comes first, then the one that the prompt asks for, then the row's fallback.
* A malformed answer holds the right one and breaks the form.
"""

import re
from enum import StrEnum
from typing import Final

_DELIMITERS: Final = (("\\(", "\\)"), ("\\[", "\\]"), ("$$", "$$"), ("$", "$"))
_COLON: Final = re.compile(r"\banswer\s*[*_]*\s*:", re.IGNORECASE)
_OPENING: Final = "Going through what is asked, step by step, one answer remains.\n\n"
REFUSAL: Final = "I'm sorry, but I can't help with that."


class Style(StrEnum):
    """The form of an answer."""

    BOXED = "boxed"
    TAG = "tag"
    COLON = "colon"
    PLAIN = "plain"


def style_of(instructions: str, row_style: Style | None, fallback: Style) -> Style:
    """Return the form in which a prompt wants its answer."""
    if row_style is not None:
        return row_style
    if "\\boxed" in instructions:
        return Style.BOXED
    if "<answer>" in instructions:
        return Style.TAG
    return Style.COLON if _COLON.search(instructions) else fallback


def well_formed(style: Style, answer: str, prefix: str | None = None) -> str:
    """Return a message that gives `answer` in its form."""
    match style:
        case Style.BOXED:
            return f"{_OPENING}\\boxed{{{without_delimiters(answer)}}}"
        case Style.TAG:
            return f"{_OPENING}<answer>{answer}</answer>"
        case Style.COLON:
            return f"{_OPENING}{(prefix or 'Answer:').rstrip()} {answer}"
        case Style.PLAIN:
            return answer


def malformed(style: Style, answer: str) -> str:
    """Return a message that breaks off inside the form of `answer`."""
    match style:
        case Style.BOXED:
            return f"{_OPENING}\\boxed{{{without_delimiters(answer)}"
        case Style.TAG:
            return f"{_OPENING}<answer>{answer[: len(answer) // 2]}"
        case Style.COLON:
            return f"{_OPENING}Answer"
        case Style.PLAIN:
            return _OPENING.strip()


def without_delimiters(answer: str) -> str:
    """Return a mathematical answer without the delimiters that put it in math mode."""
    stripped = answer.strip()
    for opening, closing in _DELIMITERS:
        whole = stripped.startswith(opening) and stripped.endswith(closing)
        if whole and len(stripped) >= len(opening) + len(closing):
            return stripped[len(opening) : len(stripped) - len(closing)].strip()
    return stripped
