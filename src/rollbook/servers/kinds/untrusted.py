"""JSON inside of a text that a model wrote.

Rules:
* What is returned can be written again: no half characters, and no nesting deeper than a reply may have.
* Whatever cannot be read so raises one kind of error.

Source: servers.md §7.
"""

import json
from typing import Any, Final

import orjson

from rollbook.servers.kinds.model_server_text import valid_text

MOST_LEVELS: Final = 100


def untrusted_json(text: str) -> Any:
    """Return the JSON value in `text`; a lone surrogate in it becomes U+FFFD.

    Raises:
        ValueError: it is no JSON, or is nested deeper than 100 levels.

    """
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        value = _read_slowly(text)
    if text.count("[") + text.count("{") > MOST_LEVELS and _is_deep(value):
        raise ValueError(f"nested deeper than {MOST_LEVELS} levels")
    return value


def _read_slowly(text: str) -> Any:
    try:
        return valid_text(json.loads(text))
    except RecursionError as error:
        raise ValueError("nested too deep") from error


def _is_deep(value: object) -> bool:
    """Return whether a value is nested deeper than is allowed, level by level."""
    level = [value]
    for _ in range(MOST_LEVELS):
        level = [
            inner
            for outer in level
            if isinstance(outer, (dict, list))
            for inner in (outer.values() if isinstance(outer, dict) else outer)
        ]
    return any(isinstance(inner, (dict, list)) for inner in level)
