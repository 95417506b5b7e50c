"""The Messages dialect over the Responses dialect.

Rules:
* Thinking blocks are reasoning items, tool uses are function calls, tool results are their outputs, both ways.
* What Responses cannot say is refused by name. `thinking` only permits reasoning and is not passed on.
* Arguments that are no JSON object come back under one key, so that no call is lost.

Source: servers.md §3.9.
"""

import uuid
from collections.abc import Iterator, Mapping
from typing import Any, Literal

import orjson
from pydantic import ConfigDict

from rollbook.records.json_values import JsonObject
from rollbook.servers.http.request_body import json_bytes
from rollbook.servers.kinds.model_server_blocks import (
    ImageBlock,
    Message,
    MessageBlock,
    MessageTool,
    RedactedThinkingBlock,
    TextBlock,
    ThinkingBlock,
    ToolChoice,
    ToolResultBlock,
    ToolUseBlock,
)
from rollbook.servers.openai.openai_parts import WireModel
from rollbook.servers.openai.openai_response import NeMoGymResponse, NeMoGymResponseCreateParamsNonStreaming

_CHOICES = {"auto": "auto", "any": "required", "none": "none"}


class MessagesCreateParams(WireModel):
    """The body of a Messages request; unknown fields are refused."""

    model_config = ConfigDict(extra="forbid", protected_namespaces=())

    messages: list[Message]
    model: str | None = None
    max_tokens: int | None = None
    system: str | list[TextBlock] | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    stop_sequences: list[str] | None = None
    tools: list[MessageTool] | None = None
    tool_choice: ToolChoice | None = None
    metadata: dict[str, Any] | None = None
    thinking: dict[str, Any] | None = None
    service_tier: str | None = None
    output_config: dict[str, Any] | None = None
    context_management: dict[str, Any] | None = None
    stream: Literal[False] | None = None


def responses_request(request: MessagesCreateParams) -> NeMoGymResponseCreateParamsNonStreaming:
    """The Responses request that asks for the same."""
    refused = [key for key in ("top_k", "stop_sequences", "context_management") if getattr(request, key)]
    if refused:
        msg = f"a Responses request has no counterpart of {', '.join(refused)}; leave them out of the request"
        raise NotImplementedError(msg)
    params: JsonObject = {"input": [item for message in request.messages for item in _items_of(message)]}
    if request.system:
        params["instructions"] = _joined(request.system)
    renamed = {"max_output_tokens": "max_tokens", "model": "model", "temperature": "temperature", "top_p": "top_p"}
    for theirs, ours in renamed.items():
        if getattr(request, ours) is not None:
            params[theirs] = getattr(request, ours)
    effort = (request.output_config or {}).get("effort")
    if effort:
        params["reasoning"] = {"effort": effort}
    params.update(_tools(request))
    return NeMoGymResponseCreateParamsNonStreaming.model_validate(params)


def _tools(request: MessagesCreateParams) -> JsonObject:
    params: JsonObject = {"tools": [_tool(tool) for tool in request.tools]} if request.tools else {}
    choice = request.tool_choice
    if choice and request.tools:
        params["tool_choice"] = _CHOICES.get(choice.type) or {"type": "function", "name": choice.name}
        if choice.disable_parallel_tool_use:
            params["parallel_tool_calls"] = False
    return params


def _tool(tool: MessageTool) -> JsonObject:
    if tool.runs_at_provider:
        msg = f"a tool of type {tool.type} runs at its provider, and there is none here"
        raise NotImplementedError(msg)
    described = {"description": tool.description} if tool.description else {}
    return {"type": "function", "name": tool.name, **described, "parameters": tool.input_schema, "strict": None}


def _joined(text: str | list[TextBlock]) -> str:
    return text if isinstance(text, str) else "\n\n".join(block.text for block in text)


def _items_of(message: Message) -> Iterator[JsonObject]:
    role, content = message.role, message.content
    blocks = [TextBlock(type="text", text=content)] if isinstance(content, str) else content
    parts: list[JsonObject] = []
    for block in blocks:
        part = _part(role, block)
        if part is not None:
            parts.append(part)
            continue
        if parts:
            yield _message(role, parts)
            parts = []
        yield _item(block)
    if parts:
        yield _message(role, parts)


def _message(role: str, parts: list[JsonObject]) -> JsonObject:
    message: JsonObject = {"type": "message", "role": role, "content": parts}
    return {**message, "id": f"msg_{uuid.uuid4().hex}", "status": "completed"} if role == "assistant" else message


def _part(role: str, block: MessageBlock) -> JsonObject | None:
    match block:
        case TextBlock() if role == "assistant":
            return {"type": "output_text", "text": block.text, "annotations": []}
        case TextBlock():
            return {"type": "input_text", "text": block.text}
        case ImageBlock():
            return {"type": "input_image", "image_url": block.source.image_url, "detail": "auto"}
        case _:
            return None


def _item(block: MessageBlock) -> JsonObject:
    match block:
        case ThinkingBlock():
            summary = [{"type": "summary_text", "text": block.thinking}]
            signed = {"encrypted_content": block.signature} if block.signature else {}
            return {"type": "reasoning", "id": f"rs_{uuid.uuid4().hex}", "summary": summary, **signed}
        case RedactedThinkingBlock():
            identity: JsonObject = {"type": "reasoning", "id": f"rs_{uuid.uuid4().hex}", "summary": []}
            return {**identity, "encrypted_content": block.data}
        case ToolUseBlock():
            arguments = json_bytes(block.input).decode()
            return {"type": "function_call", "call_id": block.id, "name": block.name, "arguments": arguments}
        case ToolResultBlock():
            return {"type": "function_call_output", "call_id": block.tool_use_id, "output": _result(block)}
        case other:
            msg = f"a content block of type {other.type} has no Responses form"
            raise NotImplementedError(msg)


def _result(block: ToolResultBlock) -> str | list[JsonObject]:
    content = block.content or ""
    if isinstance(content, str):
        return content
    parts = [_part("user", inner) for inner in content]
    return [part for part in parts if part is not None]


def messages_reply(response: NeMoGymResponse) -> JsonObject:
    """The message that a response is."""
    items: Any = response.model_dump(mode="json", exclude_unset=True)["output"]
    usage = response.usage
    cached = (usage.input_tokens_details.cached_tokens or 0) if usage else 0
    return {
        "id": response.id.replace("resp_", "msg_", 1),
        "type": "message",
        "role": "assistant",
        "model": response.model,
        "content": [block for item in items for block in _blocks(item)],
        "stop_reason": _stop_reason(response),
        "stop_sequence": None,
        "usage": {
            "input_tokens": usage.input_tokens - cached if usage else 0,
            "cache_read_input_tokens": cached,
            "output_tokens": usage.output_tokens if usage else 0,
        },
    }


def _stop_reason(response: NeMoGymResponse) -> str:
    reason = response.incomplete_details.reason if response.incomplete_details else None
    if reason == "max_output_tokens":
        return "max_tokens"
    if reason == "content_filter":
        return "refusal"
    return "tool_use" if any(item.type == "function_call" for item in response.output) else "end_turn"


def _blocks(item: Mapping[str, Any]) -> Iterator[JsonObject]:
    if item["type"] == "reasoning":
        texts = [part["text"] for part in item.get("summary") or item.get("content") or ()]
        signature = item.get("encrypted_content") or ""
        yield {"type": "thinking", "thinking": "\n\n".join(texts), "signature": signature}
    elif item["type"] == "function_call":
        yield {"type": "tool_use", "id": item["call_id"], "name": item["name"], "input": _input(item["arguments"])}
    elif item["type"] == "message":
        content = item["content"]
        parts = [{"type": "output_text", "text": content}] if isinstance(content, str) else content
        yield from ({"type": "text", "text": part.get("text") or part.get("refusal") or ""} for part in parts)


def _input(arguments: str) -> JsonObject:
    try:
        decoded = orjson.loads(arguments or "{}")
    except orjson.JSONDecodeError:
        decoded = None
    return decoded if isinstance(decoded, dict) else {"malformed_arguments": arguments}
