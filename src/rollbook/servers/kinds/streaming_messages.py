"""The streamed form of the Messages dialect: a message replayed as events.

Rules:
* Each content block is started, filled by one delta and stopped; the stop reason comes with the last usage.

Source: servers.md §3.9.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import orjson

from rollbook.records.json_values import JsonObject
from rollbook.servers.kinds.streaming_sse import named_event


def _event(kind: str, **data: object) -> bytes:
    return named_event(kind, {"type": kind, **data})


def message_events(message: Mapping[str, Any]) -> Iterator[bytes]:
    """All events of a message, in order."""
    usage = message["usage"]
    begun = {**message, "content": [], "stop_reason": None, "usage": {**usage, "output_tokens": 0}}
    yield _event("message_start", message=begun)
    for index, block in enumerate(message["content"]):
        yield from _block_events(index, block)
    ended = {"stop_reason": message["stop_reason"], "stop_sequence": message["stop_sequence"]}
    yield _event("message_delta", delta=ended, usage={"output_tokens": usage["output_tokens"]})
    yield _event("message_stop")


def _block_events(index: int, block: Mapping[str, Any]) -> Iterator[bytes]:
    empty, deltas = _split(block)
    yield _event("content_block_start", index=index, content_block=empty)
    for delta in deltas:
        yield _event("content_block_delta", index=index, delta=delta)
    yield _event("content_block_stop", index=index)


def _split(block: Mapping[str, Any]) -> tuple[JsonObject, list[JsonObject]]:
    if block["type"] == "thinking":
        deltas: list[JsonObject] = [{"type": "thinking_delta", "thinking": block["thinking"]}]
        if block["signature"]:
            deltas.append({"type": "signature_delta", "signature": block["signature"]})
        return {**block, "thinking": "", "signature": ""}, deltas
    if block["type"] == "tool_use":
        partial = orjson.dumps(block["input"]).decode()
        return {**block, "input": {}}, [{"type": "input_json_delta", "partial_json": partial}]
    return {**block, "text": ""}, [{"type": "text_delta", "text": block["text"]}]


def failed_events(failure: Mapping[str, Any]) -> Iterator[bytes]:
    """The event of a call that failed."""
    kind = "api_error" if failure["type"] == "server_error" else failure["type"]
    yield _event("error", error={"type": kind, "message": failure["message"]})
