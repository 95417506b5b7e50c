r"""The contents of `\boxed{…}` in a text.

Rules:
* Braces are matched; an escaped brace is text. A box that never ends is no box.
* No text raises, and the work grows with the text's length alone: markup nested deeper than ten times stays.

Source: servers.md §7.3.
"""

import re
from typing import Final

_OPENING: Final = re.compile(r"\\boxed\s*\{")
_BRACE: Final = re.compile(r"\\.|[{}]", re.DOTALL)
_DEEPEST: Final = 10
_TEXT: Final = re.compile(r"\\text\s*\{([^{}]*)\}")


def last_boxed(text: str) -> str | None:
    r"""Return what stands in the last complete `\boxed{…}`, or None without one."""
    closings = _closings(text)
    for opening in reversed(list(_OPENING.finditer(text))):
        end = closings.get(opening.end() - 1)
        if end is not None:
            return text[opening.end() : end]
    return None


def _closings(text: str) -> dict[int, int]:
    """Return the place of the closing brace for the place of each opening one that has any."""
    opened: list[int] = []
    closings: dict[int, int] = {}
    for brace in _BRACE.finditer(text):
        if brace.group() == "{":
            opened.append(brace.start())
        elif brace.group() == "}" and opened:
            closings[opened.pop()] = brace.start()
    return closings


def without_text_markup(content: str) -> str:
    r"""Return `content` with each `\text{…}` replaced by what it holds, stripped of white space."""
    for _ in range(_DEEPEST):
        content, replaced = _TEXT.subn(r"\1", content)
        if not replaced:
            break
    return content.strip()
