r"""The answer that a response gives, by the row's way of giving it.

Rules:
* `final_answer` takes what follows the last `Answer:` on its line, and the last `\boxed{…}` when there is none.
* No text raises, and the work grows with the text's length alone.

Source: servers.md §7.3 (13).
"""

import re
from collections.abc import Callable
from enum import StrEnum
from typing import Final

from resources_servers.mcqa.boxed import last_boxed, without_text_markup

_LABEL: Final = re.compile(r"\banswer:\**[^\S\n]*\n?", re.IGNORECASE)


class ExtractionMode(StrEnum):
    """How a response gives its answer."""

    BOXED = "boxed"
    FINAL_ANSWER = "final_answer"
    LAST_LINE = "last_line"
    FULL_RESPONSE = "full_response"


def extracted_answer(text: str, mode: ExtractionMode) -> str | None:
    """Return the answer in a response's text, None when it gives none."""
    return _WAYS[mode](text.strip()) or None


def boxed(text: str) -> str | None:
    """Return what stands in the last box."""
    found = last_boxed(text)
    return None if found is None else without_text_markup(found)


def final_answer(text: str) -> str | None:
    """Return what follows the last label on its line, else what stands in the last box."""
    labels = list(_LABEL.finditer(text))
    if not labels:
        return boxed(text)
    return last_line(text[labels[-1].end() :].partition("\n")[0])


def last_line(text: str) -> str:
    """Return the last line that says anything."""
    return text.strip().rpartition("\n")[2].strip()


_WAYS: Final[dict[ExtractionMode, Callable[[str], str | None]]] = {
    ExtractionMode.BOXED: boxed,
    ExtractionMode.FINAL_ANSWER: final_answer,
    ExtractionMode.LAST_LINE: last_line,
    ExtractionMode.FULL_RESPONSE: str.strip,
}
