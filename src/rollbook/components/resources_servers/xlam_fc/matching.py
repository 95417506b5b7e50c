"""Which of the expected function calls a response made.

Rules:
* Calls are matched in order: each expected call takes the first call not yet taken that has its name and its arguments.
* An expected call's arguments must be among the call's, with values equal
  as Python has it (`true` is 1); further arguments do no harm.
* No arguments may be said as nothing, as `null`, or as `{}`. A call whose arguments are no JSON object matches nothing,
  and still counts as a call.

Source: servers.md §7.3 (21).
"""

from collections.abc import Sequence
from typing import Any, Final

from pydantic import BaseModel

from rollbook import untrusted_json

NO_ARGUMENTS: Final = ("", "null")


class ExpectedCall(BaseModel):
    """A call that the row expects."""

    name: str
    arguments: dict[str, Any] = {}


class PredictedCall(BaseModel):
    """A call that a response made; `arguments` is the text itself when that is no JSON object."""

    name: str
    arguments: dict[str, Any] | str


def predicted(name: str, arguments: str) -> PredictedCall:
    """Return a call with its arguments read, as far as they can be read."""
    try:
        found = {} if arguments in NO_ARGUMENTS else untrusted_json(arguments)
    except ValueError:
        found = arguments
    return PredictedCall(name=name, arguments=found if isinstance(found, dict) else arguments)


def matched(expected: Sequence[ExpectedCall], made: Sequence[PredictedCall]) -> int:
    """Return how many of the expected calls were made."""
    left = list(made)
    count = 0
    for wanted in expected:
        place = next((place for place, call in enumerate(left) if fits(wanted, call)), None)
        if place is not None:
            del left[place]
            count += 1
    return count


def fits(wanted: ExpectedCall, call: PredictedCall) -> bool:
    """Return whether a call has the name and the arguments that are wanted."""
    if wanted.name != call.name or isinstance(call.arguments, str):
        return False
    made = call.arguments
    return all(name in made and same(value, made[name]) for name, value in wanted.arguments.items())


def same(wanted: object, found: object) -> bool:
    """Return whether two JSON values are equal; what is nested too deep to be compared is not."""
    try:
        return wanted == found
    except RecursionError:
        return False
