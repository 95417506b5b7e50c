"""Whether a calendar that a model wrote holds the events that are expected of it.

Rules:
* The calendar is the first JSON list of objects in the text; without one there is no calendar.
* It holds the expected events, each with its duration, inside its window and its constraint, and no two overlap.
* Whatever a model writes is right or wrong; what a row says wrongly raises.

Source: servers.md §7.3 (10).
"""

import json
import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, Final, NamedTuple

from pydantic import BaseModel

from resources_servers.calendar.times import Constraint, constraint, minutes, start_of

MOST_PLACES: Final = 100
_LIST: Final = re.compile(r"\[\s*\{")
_DECODER: Final = json.JSONDecoder()


class ExpectedEvent(BaseModel):
    """An event as the row has it: `duration` in minutes, times as `HH:MM`."""

    duration: int
    constraint: str | None = None
    min_time: str
    max_time: str


class Wanted(NamedTuple):
    """An expected event, read."""

    duration: int
    earliest: int
    latest: int
    allows: Constraint


class Placed(NamedTuple):
    """When an event of a calendar takes place, in minutes since midnight."""

    start: int
    end: int


def read(expected: Mapping[str, ExpectedEvent]) -> dict[str, Wanted]:
    """Return the expected events, by id.

    Raises:
        ValueError: a time or a constraint of the row cannot be read.

    """
    return {
        name: Wanted(event.duration, minutes(event.min_time), minutes(event.max_time), constraint(event.constraint))
        for name, event in expected.items()
    }


def is_right(text: str, expected: Mapping[str, Wanted]) -> bool:
    """Return whether a text holds a calendar with the expected events."""
    events = first_list(text)
    try:
        names = {str(event["event_id"]) for event in events}
        placed = [within(event, expected[str(event["event_id"])]) for event in events]
    except (KeyError, ValueError, TypeError):
        return False
    return len(names) == len(expected) and None not in placed and apart([time for time in placed if time])


def within(event: Mapping[str, Any], wanted: Wanted) -> Placed | None:
    """Return when an event takes place, None when that is not as it is wanted."""
    start = start_of(event["start_time"])
    end = start + wanted.duration
    right = event["duration"] == wanted.duration and wanted.earliest <= start and end <= wanted.latest
    return Placed(start, end) if right and wanted.allows(start, end) else None


def apart(placed: Sequence[Placed]) -> bool:
    """Return whether no two events overlap."""
    return all(first.end <= second.start for first, second in pairwise(sorted(placed)))


def first_list(text: str) -> list[dict[str, Any]]:
    """Return the first JSON list of objects in a text, an empty one when there is none."""
    for _, place in zip(range(MOST_PLACES), _LIST.finditer(text), strict=False):
        try:
            found, _ = _DECODER.raw_decode(text, place.start())
        except (ValueError, RecursionError):
            continue
        if all(isinstance(entry, dict) for entry in found):
            return list(found)
    return []
