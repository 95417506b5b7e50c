"""JSON as MCP's messages carry it: read and written as the plain routes do.

Rules:
* Whole numbers of any size and lone surrogates go both ways; what is no number is refused where it is read, and is
  null, or refused, where it is written.
* What cannot be read or written is a ValueError, however the parser or encoder says so.
"""

import json
from typing import Any, NoReturn

import orjson


def read_json(text: bytes) -> Any:
    """Return a JSON value.

    Raises:
        ValueError: it is none, or it is nested too deep.

    """
    try:
        return json.loads(text, parse_constant=_no_number)
    except RecursionError as deep:
        raise ValueError("nested too deep") from deep


def written_json(value: Any) -> bytes:
    """Return a value of dicts, lists, texts and numbers as JSON.

    Raises:
        ValueError: it cannot be written.

    """
    try:
        return orjson.dumps(value)
    except TypeError:
        pass
    try:
        return json.dumps(value, allow_nan=False).encode()
    except TypeError as error:
        raise ValueError(str(error)) from error
    except RecursionError as deep:
        raise ValueError("nested too deep") from deep


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number")
