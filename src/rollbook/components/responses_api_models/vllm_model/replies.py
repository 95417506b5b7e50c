"""What comes back from the endpoint, and what stands in for it; pure but for the time stamp.

Rules:
* Reasoning that came in a field of its own goes in front of the content, as `<think>…</think>`.
* A context that is full is an answer, cut off by length, not a failure. An endpoint that does not know `max_tokens`
  names it too, and says that it is unsupported: that is a failure.

Source: servers.md §5.4, points 3, 4 and 6.
"""

import time
from collections.abc import Mapping
from typing import Any

OVERFLOW_WORDS = ("context length", "max_tokens", "context size")
_UNKNOWN = "unsupported"
_BAD_REQUEST = 400
_REASONING_FIELDS = ("reasoning_content", "reasoning")


def is_context_overflow(status: int, body: bytes) -> bool:
    """Whether an error says that prompt and answer do not fit into the context."""
    text = body.decode("utf-8", "replace").lower()
    return status == _BAD_REQUEST and _UNKNOWN not in text and any(words in text for words in OVERFLOW_WORDS)


def empty_completion(model: str, finish_reason: str) -> dict[str, object]:
    """A completion without content."""
    message = {"role": "assistant", "content": None}
    return {
        "id": "chtcmpl-123",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": model,
        "choices": [{"index": 0, "finish_reason": finish_reason, "message": message}],
        "usage": None,
    }


def with_reasoning_in_content(
    message: Mapping[str, Any], *, uses_reasoning_parser: bool, continued: bool
) -> dict[str, object]:
    """The message with its reasoning joined into its content."""
    thoughts = [message[key] for key in _REASONING_FIELDS if message.get(key)]
    rest: dict[str, object] = {key: value for key, value in message.items() if key not in _REASONING_FIELDS}
    if not thoughts:
        return rest
    if not uses_reasoning_parser:
        msg = "the endpoint sent reasoning in a field of its own; set uses_reasoning_parser: true for it"
        raise AssertionError(msg)
    opened = thoughts[0] if continued else f"<think>{thoughts[0]}</think>"
    return {**rest, "content": opened + (message.get("content") or "")}
