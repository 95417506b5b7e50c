"""The streamed form of the Chat dialect: a completion replayed as chunks.

Rules:
* Only the boolean `true` streams; any other value that is not `false` or null is a mistake and says so.
* Usage comes in a chunk of its own, and only when `stream_options.include_usage` asks for it.

Source: servers.md §3.9, servers.md §14.5.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from rollbook.records.json_values import JsonObject
from rollbook.servers.kinds.streaming_sse import DONE, data_event, named_event
from rollbook.servers.openai.openai_chat import NeMoGymChatCompletion

_TEXT_KEYS = ("reasoning_content", "reasoning", "content", "refusal")


def plain_request(body: Mapping[str, Any]) -> JsonObject:
    """The request in the form that the strict model validates."""
    return {key: value for key, value in body.items() if key not in {"stream", "stream_options"}}


def includes_usage(body: Mapping[str, Any]) -> bool:
    """Whether the client asked for a usage chunk."""
    options = body.get("stream_options")
    return isinstance(options, dict) and options.get("include_usage") is True


def chat_events(completion: NeMoGymChatCompletion, include_usage: bool) -> Iterator[bytes]:
    """All chunks of a completion, in order, and the end mark."""
    whole: JsonObject = completion.model_dump(mode="json", exclude_unset=True)
    keys = ("id", "created", "model", "system_fingerprint", "service_tier")
    frame: JsonObject = {key: whole[key] for key in keys if key in whole}
    frame["object"] = "chat.completion.chunk"
    if include_usage:
        frame["usage"] = None
    choices: Any = whole["choices"]
    for choice in choices:
        for changed in _choice_chunks(choice):
            yield data_event({**frame, "choices": [{"index": choice.get("index", 0), **changed}]})
    if include_usage:
        yield data_event({**frame, "choices": [], "usage": whole.get("usage")})
    yield DONE


def _choice_chunks(choice: Mapping[str, Any]) -> Iterator[JsonObject]:
    message = choice["message"]
    yield {"delta": {"role": "assistant", "content": ""}, "finish_reason": None}
    for key in _TEXT_KEYS:
        if message.get(key):
            yield {"delta": {key: message[key]}, "finish_reason": None}
    for position, call in enumerate(message.get("tool_calls") or ()):
        yield {"delta": {"tool_calls": [{"index": position, **call}]}, "finish_reason": None}
    logprobs = {"logprobs": choice["logprobs"]} if choice.get("logprobs") else {}
    yield {"delta": {}, **logprobs, "finish_reason": choice["finish_reason"]}


def failed_events(failure: Mapping[str, Any]) -> Iterator[bytes]:
    """The events of a call that failed after headers were out."""
    yield named_event("error", {"error": dict(failure)})
