"""Half of a character (a lone surrogate, U+D800 to U+DFFF): JSON may name one, and no reply can hold it.

Rules:
* A reply that cannot be written for it is the sender's to mend where one was sent, and a failure where none was.
* What a handler cannot write elsewhere is its own failure, whatever was sent.
* Only a body that may have half of a character in it is kept.

Source: servers.md §3.5.
"""

import json
from typing import Final

from pydantic_core import PydanticSerializationError
from starlette.responses import JSONResponse, Response
from starlette.types import Message, Receive

SENT: Final = "rollbook.sent"
"""Where a scope holds the body of a request that was read before."""

_MARKS: Final = (b"\\ud", b"\\uD", b"\xed")
_WRITERS: Final = frozenset({Response.render.__code__, JSONResponse.render.__code__})


class Sent:
    """The receiving half of an exchange; `body` is what was sent, if it may have half of a character in it."""

    __slots__ = ("_parts", "_receive", "body")

    def __init__(self, receive: Receive, body: bytes | None) -> None:
        self._receive = receive
        self._parts: list[bytes] = []
        self.body = body

    async def receive(self) -> Message:
        """Return the next message."""
        message = await self._receive()
        if message["type"] == "http.request":
            self._parts.append(message.get("body", b""))
            if not message.get("more_body", False):
                body = b"".join(self._parts)
                self._parts.clear()
                self.body = body if any(mark in body for mark in _MARKS) else None
        return message

    def is_at_fault(self, error: BaseException) -> bool:
        """Whether a reply could not be written because of half of a character, and one was sent."""
        return self.body is not None and _is_of_a_reply(error) and _has_half_a_character(self.body)


def _is_of_a_reply(error: BaseException) -> bool:
    """Whether half of a character kept a reply from being written."""
    if "surrogates not allowed" not in str(error):
        return False
    if isinstance(error, PydanticSerializationError):
        return True
    at = error.__traceback__ if isinstance(error, UnicodeEncodeError) else None
    while at is not None and at.tb_next is not None:
        at = at.tb_next
    return at is not None and at.tb_frame.f_code in _WRITERS


def _has_half_a_character(body: bytes) -> bool:
    try:
        json.dumps(json.loads(body), ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return True
    except (ValueError, RecursionError):
        return False
    return False
