"""A chat completion to a response.

Rules:
* Only the first choice is read.
* Reasoning that stands in the text as `<think>…</think>` is cut out into one reasoning item, one summary per block.
* There is always an output item; the tokens go with the last one.
* A count that the endpoint did not report stays null.

Source: servers.md §5.2, response direction.
"""

import re
import uuid
from collections.abc import Mapping
from typing import Any

from rollbook.records.json_values import JsonObject
from rollbook.servers.openai.openai_chat import (
    NeMoGymChatCompletion,
    NeMoGymChatCompletionMessage,
    NeMoGymChatCompletionToolCall,
    NeMoGymChoice,
    NeMoGymCompletionUsage,
)
from rollbook.servers.openai.openai_response import NeMoGymResponse, NeMoGymResponseCreateParamsNonStreaming
from rollbook.servers.openai.openai_training import TOKEN_KEYS

THINK = re.compile(r"<think>(.*?)</think>", re.DOTALL)
_ECHOED = frozenset(NeMoGymResponse.model_fields) & frozenset(NeMoGymResponseCreateParamsNonStreaming.model_fields)
_CACHED_KEYS = ("cached_tokens", "cached_input_tokens", "cache_read_input_tokens")
_REASONING_KEYS = ("reasoning_tokens", "reasoning_output_tokens")
_INCOMPLETE = {"length": "max_output_tokens", "content_filter": "content_filter"}


def response_json(
    request: NeMoGymResponseCreateParamsNonStreaming, completion: NeMoGymChatCompletion, items: list[JsonObject]
) -> JsonObject:
    """The response around output items, with what was asked echoed."""
    choice = completion.choices[0]
    reason = _INCOMPLETE.get(choice.finish_reason or "")
    echoed = request.model_dump(include=set(_ECHOED), exclude_unset=True)
    response: JsonObject = {
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "model": completion.model,
        **{key: value for key, value in echoed.items() if value is not None},
        "id": f"resp_{uuid.uuid4().hex}",
        "created_at": completion.created,
        "object": "response",
        "output": items,
        "status": "incomplete" if reason else "completed",
        "incomplete_details": {"reason": reason} if reason else None,
        "error": None,
        "usage": usage_json(completion.usage) if completion.usage else None,
    }
    native = (choice.model_extra or {}).get("native_finish_reason")
    return response if native is None else {**response, "native_finish_reason": native}


def output_items(choice: NeMoGymChoice, uses_reasoning_parser: bool) -> list[JsonObject]:
    """The choice's message as output items, in order: reasoning, message, calls."""
    message = choice.message
    text = message.content or ""
    thoughts: list[str] = []
    if uses_reasoning_parser:
        thoughts, text = cut_thoughts(text)
    items: list[JsonObject] = [_reasoning_item(thoughts)] if thoughts else []
    calls = message.tool_calls or []
    if text or message.refusal or not (items or calls):
        items.append(_message_item(text, message.refusal))
    items.extend(_call_item(call) for call in calls)
    items[-1].update(_tokens(message))
    return items


def cut_thoughts(text: str) -> tuple[list[str], str]:
    """What stands in `<think>…</think>`, and the text without it."""
    thoughts = THINK.findall(text)
    return thoughts, THINK.sub("", text) if thoughts else text


def _reasoning_item(thoughts: list[str]) -> JsonObject:
    summary = [{"type": "summary_text", "text": thought} for thought in thoughts]
    return {"type": "reasoning", "id": f"rs_{uuid.uuid4().hex}", "summary": summary}


def _message_item(text: str, refusal: str | None) -> JsonObject:
    content: list[JsonObject] = []
    if text or not refusal:
        content.append({"type": "output_text", "text": text, "annotations": []})
    if refusal:
        content.append({"type": "refusal", "refusal": refusal})
    identity: JsonObject = {"type": "message", "id": f"msg_{uuid.uuid4().hex}", "role": "assistant"}
    return {**identity, "status": "completed", "content": content}


def _call_item(call: NeMoGymChatCompletionToolCall) -> JsonObject:
    call_id = call.id or f"call_{uuid.uuid4().hex}"
    identity: JsonObject = {"id": call_id, "call_id": call_id, "status": "completed"}
    if call.type == "custom":
        return {"type": "custom_tool_call", **identity, "name": call.custom["name"], "input": call.custom["input"]}
    function = call.function
    return {"type": "function_call", **identity, "name": function.name, "arguments": function.arguments}


def _tokens(message: NeMoGymChatCompletionMessage) -> JsonObject:
    keys = (*TOKEN_KEYS, "routed_experts")
    return {key: getattr(message, key) for key in keys if getattr(message, key, None) is not None}


def usage_json(usage: NeMoGymCompletionUsage) -> JsonObject:
    """Chat usage under the names of the Responses dialect."""
    extra = usage.model_extra or {}
    prompt = usage.prompt_tokens_details or {}
    completion = usage.completion_tokens_details or {}
    return {
        "input_tokens": usage.prompt_tokens,
        "input_tokens_details": {"cached_tokens": _first(_CACHED_KEYS, prompt, extra)},
        "output_tokens": usage.completion_tokens,
        "output_tokens_details": {"reasoning_tokens": _first(_REASONING_KEYS, completion, extra)},
        "total_tokens": usage.total_tokens,
    }


def _first(keys: tuple[str, ...], *places: Mapping[str, Any]) -> int | None:
    return next((place[key] for place in places for key in keys if place.get(key) is not None), None)
