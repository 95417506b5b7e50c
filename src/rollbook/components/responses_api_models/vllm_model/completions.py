"""Chat requests over an endpoint that only completes text.

Rules:
* The prompt is the text of all messages, in order, one per line; tools have no place in it.
* The reply takes the shape of a chat completion, log-probabilities included.

Source: servers.md §5.4, point 9.
"""

from collections.abc import Mapping
from typing import Any

_CHAT_ONLY = frozenset({"messages", "tools", "tool_choice", "parallel_tool_calls", "chat_template_kwargs"})


def completion_request(body: Mapping[str, Any]) -> dict[str, object]:
    """A chat request as a completion request."""
    if body.get("tools"):
        msg = "use_completions_api is text only: leave the tools out, or use an endpoint with chat completions"
        raise NotImplementedError(msg)
    request = {key: value for key, value in body.items() if key not in _CHAT_ONLY}
    request["prompt"] = "\n".join(_text(message) for message in body["messages"])
    if request.pop("logprobs", None):
        request["logprobs"] = request.pop("top_logprobs", 0)
    return request


def _text(message: Mapping[str, Any]) -> str:
    content = message.get("content") or ""
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
    others = sorted({part["type"] for part in parts} - {"text"})
    if others:
        msg = f"use_completions_api is text only, and a message holds {', '.join(others)}"
        raise NotImplementedError(msg)
    return "".join(part["text"] for part in parts)


def chat_reply(reply: Mapping[str, Any]) -> dict[str, object]:
    """A completion as a chat completion."""
    choices = [_choice(choice) for choice in reply["choices"]]
    return {**reply, "object": "chat.completion", "choices": choices}


def _choice(choice: Mapping[str, Any]) -> dict[str, object]:
    kept = {key: value for key, value in choice.items() if key not in {"text", "logprobs"}}
    kept["message"] = {"role": "assistant", "content": choice["text"]}
    found = choice.get("logprobs")
    if found:
        pairs = zip(found["tokens"], found["token_logprobs"], strict=True)
        content = [{"token": token, "logprob": value, "bytes": None, "top_logprobs": []} for token, value in pairs]
        kept["logprobs"] = {"content": content}
    return kept
