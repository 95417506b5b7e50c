"""A Responses request to a chat completion request.

Rules:
* A parameter that chat completions do not have is refused by name.
* Null says the same as absent, and is not sent.
* Without tools nothing about tools is sent.

Source: servers.md §5.2, request direction, points 1, 5 and 6.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from rollbook.records.json_values import JsonObject
from rollbook.servers.converter.responses_converter_messages import chat_messages, user_message, with_instructions

UNSUPPORTED_FIELDS = (
    "background",
    "context_management",
    "conversation",
    "include",
    "max_tool_calls",
    "previous_response_id",
    "prompt",
    "truncation",
)
SAME_NAME = (
    "metadata",
    "model",
    "moderation",
    "parallel_tool_calls",
    "prompt_cache_key",
    "prompt_cache_retention",
    "safety_identifier",
    "service_tier",
    "store",
    "temperature",
    "top_logprobs",
    "top_p",
    "user",
)
"""Fields that both dialects call the same."""
_NAMED = ("function", "custom")


def chat_params(request: Mapping[str, Any], with_tokens: bool) -> JsonObject:
    """The chat completion request that asks for the same, given a request dumped without unset fields."""
    given = {key: value for key, value in request.items() if value is not None}
    unsupported = [key for key in UNSUPPORTED_FIELDS if key in given]
    if unsupported:
        msg = f"chat completions have no counterpart of {', '.join(unsupported)}; leave them out of the request"
        raise NotImplementedError(msg)
    source = given["input"]
    messages = [user_message(source)] if isinstance(source, str) else chat_messages(source, with_tokens)
    params: JsonObject = {"messages": with_instructions(given.get("instructions"), messages)}
    params.update({key: given[key] for key in SAME_NAME if key in given})
    if "max_output_tokens" in given:
        params["max_tokens"] = given["max_output_tokens"]
    params.update(_reasoning(given.get("reasoning") or {}))
    params.update(_text(given.get("text") or {}))
    _add_tools(params, given)
    return params


def _reasoning(reasoning: Mapping[str, Any]) -> JsonObject:
    others = sorted(key for key, value in reasoning.items() if key != "effort" and value is not None)
    if others:
        msg = f"chat completions have no counterpart of reasoning.{', reasoning.'.join(others)}"
        raise NotImplementedError(msg)
    return {"reasoning_effort": reasoning["effort"]} if reasoning.get("effort") is not None else {}


def _text(text: Mapping[str, Any]) -> JsonObject:
    params: JsonObject = {}
    if text.get("verbosity") is not None:
        params["verbosity"] = text["verbosity"]
    chosen = text.get("format") or {"type": "text"}
    if chosen["type"] == "json_schema":
        keys = ("name", "schema", "strict", "description")
        schema = {key: chosen[key] for key in keys if chosen.get(key) is not None}
        params["response_format"] = {"type": "json_schema", "json_schema": schema}
    elif chosen["type"] == "json_object":
        params["response_format"] = {"type": "json_object"}
    elif chosen["type"] != "text":
        msg = f"chat completions have no text format {chosen['type']}"
        raise NotImplementedError(msg)
    return params


def _add_tools(params: JsonObject, given: Mapping[str, Any]) -> None:
    choice = given.get("tool_choice")
    tools = given.get("tools")
    if tools:
        params["tools"] = [chat_tool(tool) for tool in tools]
        if choice is not None:
            params["tool_choice"] = chat_tool_choice(choice)
        return
    if choice not in (None, "none", "auto"):
        msg = f"tool_choice {choice!r} needs tools, and the request has none"
        raise ValueError(msg)
    params.pop("parallel_tool_calls", None)


def chat_tool(tool: Mapping[str, Any]) -> JsonObject:
    """A tool with its definition nested under its type."""
    kind = tool["type"]
    if kind not in _NAMED or tool.get("defer_loading"):
        msg = f"chat completions have no tool of type {kind}{' with defer_loading' if kind in _NAMED else ''}"
        raise NotImplementedError(msg)
    keys = ("name", "description", "parameters", "strict") if kind == "function" else ("name", "description", "format")
    definition: JsonObject = {key: tool[key] for key in keys if tool.get(key) is not None}
    shape = tool.get("format")
    if kind == "custom" and shape and shape["type"] == "grammar":
        grammar = {key: value for key, value in shape.items() if key != "type"}
        definition["format"] = {"type": "grammar", "grammar": grammar}
    return {"type": kind, kind: definition}


def chat_tool_choice(choice: str | Mapping[str, Any]) -> str | JsonObject:
    """A tool choice with what it names nested under its type."""
    if isinstance(choice, str):
        return choice
    kind = choice["type"]
    if kind == "allowed_tools":
        return {"type": kind, kind: {"mode": choice["mode"], "tools": list(_nested(choice["tools"]))}}
    if kind not in _NAMED:
        msg = f"chat completions have no tool choice of type {kind}"
        raise NotImplementedError(msg)
    return {"type": kind, kind: {"name": choice["name"]}}


def _nested(references: Iterable[Mapping[str, Any]]) -> Iterable[str | JsonObject]:
    return (chat_tool_choice(reference) for reference in references)
