r"""How much an answer agrees with the expected one: 1, 0.98 or 0.

Rules:
* Compared are texts in one form: NFKC, without outer quotes, in small letters, one space between words, without a last
  `.`, `!` or `?` unless there is nothing else.
* Equal is worth 1: as it stands, as a number, without the commas of thousands, without LaTeX's marks, as a list, with
  the states of the USA abbreviated; and the same once more without units. `%`, `€` and `£` are units of
  numbers alone.
* Two numbers, units left away, that differ by no more than a hundredth of the larger are worth 0.98.
* A number beyond what a float holds is a text. An answer too long to be one is worth 0.

Source: servers.md §7.3 (13).
"""

import math
import re
import unicodedata
from collections.abc import Callable
from typing import Final

from resources_servers.string_match.states import abbreviated

EQUAL: Final = 1.0
NEAR: Final = 0.98
NEARNESS: Final = 0.01
ROUNDING: Final = 1e-9
DEEPEST: Final = 10
LONGEST_ANSWER: Final = 100_000

_QUOTES: Final = "\"'"
_THOUSANDS: Final = re.compile(r"(?<=\d),(?=\d{3}(?:\D|$))")
_MARKED: Final = re.compile(r"\\(?:text|textbf|mathrm|mathbf|boxed)\s*\{([^{}]*)\}")
_MARKS: Final = re.compile(r"\\?\$|\\[()\[\]]|\\%")
_SPACES: Final = re.compile(r"[^\S\n]+")
_SEPARATORS: Final = re.compile(r"[,;\n]")
_UNITS: Final = re.compile(r"\b(?:km|cm|mm|kg|m)\b|(?<=\d)(?:km|cm|mm|kg|m)\b|[°$]|\^?\{?\\circ\}?")
_UNITS_OF_NUMBERS: Final = re.compile(rf"{_UNITS.pattern}|[%€£]")


def agreement(answer: str, expected: str, *, case_sensitive: bool) -> float:
    """Return what `answer` is worth."""
    if len(answer) > max(LONGEST_ANSWER, len(expected)):
        return 0.0
    if case_sensitive:
        return float(answer.strip() == expected.strip())
    given, wanted = in_one_form(answer), in_one_form(expected)
    if equal(given, wanted):
        return EQUAL
    if near(given, wanted):
        return NEAR
    return float(equal(without_units(given, _UNITS), without_units(wanted, _UNITS)))


def in_one_form(text: str) -> str:
    """Return a text as texts are compared."""
    plain = unicodedata.normalize("NFKC", text).strip()
    if len(plain) > 1 and plain[0] == plain[-1] and plain[0] in _QUOTES:
        plain = plain[1:-1].strip()
    plain = plain.lower()
    return _SPACES.sub(" ", plain.rstrip(".!?").strip() or plain)


def equal(given: str, wanted: str) -> bool:
    """Return whether two texts in one form are equal in any of the ways."""
    if given == wanted:
        return True
    if not given or not wanted:
        return False
    if (number := value_of(given)) is not None and number == value_of(wanted):
        return True
    return any(way(given) == way(wanted) for way in _WAYS)


def near(given: str, wanted: str) -> bool:
    """Return whether two texts are numbers close to each other, units left away."""
    first, second = (value_of(without_thousands(without_units(text, _UNITS_OF_NUMBERS))) for text in (given, wanted))
    if first is None or second is None:
        return False
    return abs(first - second) <= NEARNESS * max(abs(first), abs(second)) * (1 + ROUNDING)


def value_of(text: str) -> float | None:
    """Return the number that a text is, None when it is none."""
    if "_" in text:
        return None
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def without_thousands(text: str) -> str:
    """Return a text without the commas between thousands."""
    return _THOUSANDS.sub("", text)


def by_thousands(text: str) -> str | float:
    """Return a text without the commas between thousands; the number, when that leaves one."""
    plain = without_thousands(text)
    value = value_of(plain)
    return plain if value is None else value


def without_marks(text: str) -> str:
    """Return a text without the marks of LaTeX: what stands in them stays."""
    for _ in range(DEEPEST):
        text, replaced = _MARKED.subn(r"\1", text)
        if not replaced:
            break
    return _MARKS.sub("", text).strip()


def without_escapes(text: str) -> str:
    """Return a text with per cent signs as they are written outside of LaTeX."""
    return text.replace("\\%", "%")


def as_list(text: str) -> list[str]:
    """Return the entries of a text that is a list, white space and empty ones left away."""
    return [entry for part in _SEPARATORS.split(text) if (entry := part.strip())]


def without_units(text: str, units: re.Pattern[str]) -> str:
    """Return a text without these units."""
    return units.sub("", text).strip()


def with_states(text: str) -> list[str]:
    """Return the entries of a list, with the states of the USA abbreviated."""
    return [abbreviated(entry) for entry in as_list(text)]


_WAYS: Final[tuple[Callable[[str], object], ...]] = (
    by_thousands,
    without_marks,
    without_escapes,
    as_list,
    with_states,
)
