"""Names for JSON that has been decoded and not yet been given a type.

Rules:
* A `JsonObject` is built or read at an edge; a room's own values are frozen structs.
"""

from collections.abc import Mapping
from typing import Final

JsonObject = dict[str, object]
JsonMapping = Mapping[str, object]

_NAMES: Final = {bool: "a boolean", int: "a number", float: "a number", str: "a string", list: "an array"}


def json_type(value: object) -> str:
    """Return the name of a decoded value's JSON type, with its article."""
    if value is None:
        return "null"
    return _NAMES.get(type(value), "an object")


def text_or_none(value: object) -> str | None:
    """Return a text that says something; None of anything else."""
    return value if isinstance(value, str) and value else None


def mapping_or_empty(value: object) -> Mapping[str, object]:
    """Return a mapping; an empty one of anything else."""
    return value if isinstance(value, Mapping) else {}
