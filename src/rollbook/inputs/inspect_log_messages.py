"""inspect_ai's chat messages → items of a Responses API input or output, as far as they map.

Rules:
* Ids of messages are inspect's own and chance: they are left out, so that the same sample is the same task.
* Text, images, reasoning, tool calls and their results map; of audio, video and the like only the name is kept.
* What is of another type than it should be is no text: a log is somebody else's.

Source: inspect_ai 0.3, model/_chat_message.py; the OpenAI Responses API.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

import msgspec

from rollbook.records.json_values import JsonObject

Resolve = Callable[[str], str]
"""Puts what was attached where a text points at it."""

ATTACHED: Final = re.compile(r"attachment://([0-9a-f]{32})")
_GENERATED: Final = "generate"
_ASSISTANT: Final = "assistant"
_ROLES: Final = frozenset({"system", "developer", "user", _ASSISTANT})


def input_items(given: object, resolve: Resolve) -> list[JsonObject]:
    """Return a sample's input, a text or messages, as input items."""
    if isinstance(given, str):
        return [{"role": "user", "content": resolve(given)}]
    return [item for message in _mappings(given) for item in _items(message, resolve, plain=True)]


def output_items(messages: object, resolve: Resolve) -> list[JsonObject]:
    """Return what came after the input: from the first message that was generated on."""
    told = list(_mappings(messages))
    begin = next((at for at, message in enumerate(told) if message.get("source") == _GENERATED), None)
    return [] if begin is None else [item for message in told[begin:] for item in _items(message, resolve, plain=False)]


def text(value: object) -> str:
    """Return `value` where it is a text."""
    return value if isinstance(value, str) else ""


def _items(message: Mapping[str, object], resolve: Resolve, *, plain: bool) -> Iterator[JsonObject]:
    role, content = message.get("role"), message.get("content")
    if role == "tool":
        called = text(message.get("tool_call_id"))
        yield {"type": "function_call_output", "call_id": called, "output": _said(content, resolve)}
        return
    yield from (_reasoning(part, resolve) for part in _mappings(content) if part.get("type") == "reasoning")
    item = _message(role if role in _ROLES else "user", content, resolve, plain=plain)
    if item is not None:
        yield item
    yield from (_call(call, resolve) for call in _mappings(message.get("tool_calls")))


def _message(role: object, content: object, resolve: Resolve, *, plain: bool) -> JsonObject | None:
    """Return a message as an item; in an input a text stays a text, and in an output it is a part like others."""
    if plain and isinstance(content, str):
        return {"role": role, "content": resolve(content)}
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else _mappings(content)
    told = [_part(part, role, resolve) for part in parts if part.get("type") != "reasoning"]
    if not told or told == [_part({"type": "text", "text": ""}, role, resolve)]:
        return None
    item: JsonObject = {"type": "message", "role": role, "content": told}
    return item | ({"status": "completed"} if role == _ASSISTANT else {})


def _part(part: Mapping[str, object], role: object, resolve: Resolve) -> JsonObject:
    kind = part.get("type")
    if kind == "image" and role != _ASSISTANT:
        return {
            "type": "input_image",
            "image_url": resolve(text(part.get("image"))),
            "detail": part.get("detail", "auto"),
        }
    said = resolve(text(part.get("text"))) if kind == "text" else f"[{text(kind) or 'unknown'}]"
    if role == _ASSISTANT:
        return {"type": "output_text", "text": said, "annotations": []}
    return {"type": "input_text", "text": said}


def _reasoning(part: Mapping[str, object], resolve: Resolve) -> JsonObject:
    thought = resolve(text(part.get("reasoning")))
    summary = [{"type": "summary_text", "text": text(part.get("summary")) or thought}]
    return {"type": "reasoning", "summary": summary}


def _call(call: Mapping[str, object], resolve: Resolve) -> JsonObject:
    arguments = call.get("arguments")
    written = arguments if isinstance(arguments, str) else msgspec.json.encode(arguments).decode()
    return {
        "type": "function_call",
        "call_id": text(call.get("id")),
        "name": text(call.get("function")),
        "arguments": resolve(written),
    }


def _said(content: object, resolve: Resolve) -> str:
    if isinstance(content, str):
        return resolve(content)
    return "\n".join(resolve(text(part.get("text"))) for part in _mappings(content) if part.get("type") == "text")


def _mappings(value: object) -> Sequence[Mapping[str, object]]:
    return [one for one in value if isinstance(one, Mapping)] if isinstance(value, list) else []
