"""From a model's text to the letter that it chose.

Rules:
* A row's own pattern is asked first, then the grading mode; a text that names no letter has no answer.
* Only an option's letter is an answer, except where a row's own pattern captured a single letter.
* A pattern sees the end of a long text alone, and one that does not compile raises before any text is looked at.

Source: servers.md §7.3 (1).
"""

import re
import unicodedata
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from resources_servers.mcqa.boxed import last_boxed, without_text_markup
from resources_servers.mcqa.payloads import letter_after_prefix

PATTERN_CHARS: Final = 8_192
_WHOLE_BOX: Final = re.compile(r"[\W_]*([A-Z])[\W_]*")
_BOX_START: Final = re.compile(r"([A-Z])[:).\-]")
_ANSWER: Final = re.compile(r"answer\s*:\s*(.+)", re.IGNORECASE)


class GradingMode(StrEnum):
    """Where in a text the answer is looked for."""

    STRICT_SINGLE_LETTER_BOXED = "strict_single_letter_boxed"
    LENIENT_BOXED = "lenient_boxed"
    LENIENT_ANSWER_COLON = "lenient_answer_colon"
    LENIENT_ANSWER_COLON_MD = "lenient_answer_colon_md"


@dataclass(frozen=True, slots=True)
class Question:
    """What a text is graded against: letter → option text, and the row's own ways of finding the answer."""

    options: Mapping[str, str]
    patterns: tuple[re.Pattern[str], ...] = ()
    answer_prefix: str | None = None


def option_texts(options: Iterable[Mapping[str, object]]) -> dict[str, str]:
    """Return letter → text of a row's `options`, letters in upper case."""
    return {
        str(letter).strip().upper(): str("" if text is None else text)
        for option in options
        for letter, text in option.items()
    }


def compiled_patterns(output_regex: str | Sequence[str] | None) -> tuple[re.Pattern[str], ...]:
    """Return a row's `output_regex` as patterns that ignore case.

    Raises:
        re.error: one of them is no regular expression.

    """
    given = [output_regex] if isinstance(output_regex, str) else list(output_regex or ())
    return tuple(re.compile(pattern, re.IGNORECASE) for pattern in given if pattern)


def chosen_letter(text: str, question: Question, mode: GradingMode) -> str | None:
    """Return the letter that `text` answers with, or None when it names none."""
    stripped = text.strip()
    if not stripped:
        return None
    by_pattern = _by_patterns(stripped, question)
    return by_pattern if by_pattern is not None else _MODES[mode](stripped, question)


def normalised(text: str) -> str:
    """Return `text` as options are compared: NFKC, no case, single spaces, no full stop at the end."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split()).rstrip(".").rstrip()


def _by_patterns(text: str, question: Question) -> str | None:
    tail = text[-PATTERN_CHARS:]
    letters = (_captured_letter(pattern, tail, question.options) for pattern in question.patterns)
    return next((letter for letter in letters if letter is not None), None)


def _captured_letter(pattern: re.Pattern[str], text: str, options: Mapping[str, str]) -> str | None:
    found = deque(pattern.finditer(text), maxlen=1)
    if not found:
        return None
    last = found.pop()
    captured = next((group for group in last.groups() if group is not None), last.group()).strip()
    if len(captured) == 1 and captured.isalpha():
        return captured.upper()
    return next((letter for letter, option in options.items() if option.strip() == captured), None)


def _strictly_boxed(text: str, question: Question) -> str | None:
    box = last_boxed(text)
    if box is None:
        return None
    content = without_text_markup(box)
    match = _WHOLE_BOX.fullmatch(content) or _BOX_START.match(content)
    return match[1] if match and match[1] in question.options else None


def _leniently_boxed(text: str, question: Question) -> str | None:
    letter = _strictly_boxed(text, question)
    box = last_boxed(text)
    if letter is not None or box is None:
        return letter
    content = normalised(without_text_markup(box))
    named = [
        letter for letter, option in question.options.items() if (wanted := normalised(option)) and wanted in content
    ]
    return named[0] if len(named) == 1 else None


def _after_answer_colon(text: str, question: Question) -> str | None:
    match = _ANSWER.search(text)
    if match is None:
        return None
    payload = match[1].strip()
    if len(payload) == 1:
        letter = payload.upper()
        return letter if letter in question.options else None
    wanted = normalised(payload)
    return next(
        (letter for letter, option in question.options.items() if wanted and normalised(option) == wanted), None
    )


def _after_marked_answer(text: str, question: Question) -> str | None:
    return letter_after_prefix(text, frozenset(question.options), question.answer_prefix)


_MODES: Final[Mapping[GradingMode, Callable[[str, Question], str | None]]] = {
    GradingMode.STRICT_SINGLE_LETTER_BOXED: _strictly_boxed,
    GradingMode.LENIENT_BOXED: _leniently_boxed,
    GradingMode.LENIENT_ANSWER_COLON: _after_answer_colon,
    GradingMode.LENIENT_ANSWER_COLON_MD: _after_marked_answer,
}
