"""Replies as JSON bytes, also where a model wrote half of a character.

Rules:
* A lone surrogate is no text that JSON in UTF-8 can carry: it is sent, and read, as U+FFFD.
* Two halves that belong together become their character.
* Everything else in a reply stays as it is, and a reply without surrogates is written once.

Source: servers.md §3.9.
"""

import json
import logging
from collections.abc import Mapping
from typing import Any, NoReturn

import orjson
from pydantic import BaseModel
from pydantic_core import PydanticSerializationError

from rollbook.servers.http.request_body import json_bytes

_LOG = logging.getLogger(__name__)


def reply_bytes(reply: BaseModel | Mapping[str, Any]) -> bytes:
    """Return a reply as JSON; a model goes without the fields nobody set."""
    try:
        if isinstance(reply, BaseModel):
            return reply.__pydantic_serializer__.to_json(reply, exclude_unset=True)
        return orjson.dumps(reply)
    except (PydanticSerializationError, TypeError) as error:
        _LOG.warning("a reply is written with U+FFFD for what is no text: %s", error)
    plain = reply.model_dump(mode="json", exclude_unset=True) if isinstance(reply, BaseModel) else reply
    return json_bytes(valid_text(plain))


def parsed_reply(body: bytes) -> object:
    """Return an endpoint's JSON, whose escapes may name lone surrogates; None when it is none."""
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        pass
    try:
        return valid_text(json.loads(body, parse_constant=_no_number))
    except (ValueError, RecursionError):
        return None


def valid_text(value: Any) -> Any:
    """Return a JSON value with U+FFFD in place of every lone surrogate in its texts and keys."""
    if isinstance(value, str):
        return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    if isinstance(value, Mapping):
        return {valid_text(key): valid_text(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [valid_text(inner) for inner in value]
    return value


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is no JSON")
