"""Times of a day, as minutes since midnight, and what an event's constraint asks of them.

Rules:
* A time is `14:05`, `2:05pm` or `2pm`; a constraint may put a space before `am` and `pm`.
* An event ends by the time of `before T`, starts no earlier than that of `after T`, starts at that of `at T`, and lies
  inside those of `between T and T`.

Source: servers.md §7.3 (10).
"""

import re
from collections.abc import Callable
from typing import Final

_TIME: Final = re.compile(r"(\d{1,2})(?::(\d{2}))?\s*(am|pm)?", re.IGNORECASE)
_CONSTRAINT: Final = re.compile(
    r"(?P<form>before|after|at|between)\s+(?P<time>\S+(?:\s*[ap]m)?)(?:\s+and\s+(?P<until>.+))?", re.IGNORECASE
)
_HOURS: Final = 24
_HALF: Final = 12
_HOUR: Final = 60

Constraint = Callable[[int, int], bool]


def minutes(text: str) -> int:
    """Return a time as minutes since midnight.

    Raises:
        ValueError: it is no time.

    """
    found = _TIME.fullmatch(text.strip())
    if found is None or not (found[2] or found[3]):
        raise ValueError(f"{text!r} is no time; write 14:05 or 2:05pm")
    hour, minute = int(found[1]), int(found[2] or 0)
    if found[3]:
        if not 1 <= hour <= _HALF:
            raise ValueError(f"{text!r} is no time of twelve hours")
        hour = hour % _HALF + _HALF * (found[3].lower() == "pm")
    if hour >= _HOURS or minute >= _HOUR:
        raise ValueError(f"{text!r} is no time of a day")
    return hour * _HOUR + minute


def start_of(text: object) -> int:
    """Return the time at which an event starts, as the model wrote it.

    Raises:
        ValueError: it is no time.

    """
    if not isinstance(text, str) or " " in text.strip():
        raise ValueError(f"{text!r} is no start time; write 14:05")
    return minutes(text)


def constraint(text: str | None) -> Constraint:
    """Return what a constraint asks of an event's start and end.

    Raises:
        ValueError: the constraint has none of the forms.

    """
    if not text or not text.strip():
        return lambda _start, _end: True
    found = _CONSTRAINT.fullmatch(text.strip())
    if found is None or (found["until"] is None) == (found["form"].lower() == "between"):
        raise ValueError(f"constraint {text!r}: write `before T`, `after T`, `between T and T` or `at T`")
    time = minutes(found["time"])
    match found["form"].lower():
        case "before":
            return lambda _start, end: end <= time
        case "after":
            return lambda start, _end: start >= time
        case "at":
            return lambda start, _end: start == time
    until = minutes(found["until"])
    return lambda start, end: time <= start and end <= until
