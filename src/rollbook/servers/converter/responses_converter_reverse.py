"""Chat completion requests and messages to the Responses dialect.

Rules:
* An assistant message becomes the items that the forward direction would have joined into it.
* A field that the Responses dialect does not have is refused by name.

Source: servers.md §5.2, reverse direction.
"""

import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rollbook.records.json_values import JsonObject
from rollbook.servers.converter.responses_converter_reply import THINK
from rollbook.servers.converter.responses_converter_request import SAME_NAME
from rollbook.servers.openai.openai_training import TOKEN_KEYS

_READ = frozenset(
    {
        *SAME_NAME,
        "logprobs",
        "max_completion_tokens",
        "max_tokens",
        "messages",
        "reasoning_effort",
        "response_format",
        "stream",
        "stream_options",
        "tool_choice",
        "tools",
        "verbosity",
    }
)
_MODEL_MADE = frozenset({"reasoning", "function_call", "custom_tool_call"})


def responses_params(chat: Mapping[str, Any]) -> JsonObject:
    """The Responses request that asks for the same, given a chat request dumped without unset fields."""
    given = {key: value for key, value in chat.items() if value is not None}
    unknown = sorted(given.keys() - _READ)
    if unknown:
        msg = f"a Responses request has no counterpart of {', '.join(unknown)}; leave them out of the request"
        raise NotImplementedError(msg)
    params: JsonObject = {"input": responses_items(given["messages"])}
    params.update({key: given[key] for key in SAME_NAME if key in given})
    limit = given.get("max_completion_tokens", given.get("max_tokens"))
    if limit is not None:
        params["max_output_tokens"] = limit
    if "reasoning_effort" in given:
        params["reasoning"] = {"effort": given["reasoning_effort"]}
    text = _text(given)
    if text:
        params["text"] = text
    if "tools" in given:
        params["tools"] = [_flat(tool) for tool in given["tools"]]
    if "tool_choice" in given:
        choice = given["tool_choice"]
        params["tool_choice"] = choice if isinstance(choice, str) else _flat(choice)
    return params


def _text(given: Mapping[str, Any]) -> JsonObject:
    text: JsonObject = {"verbosity": given["verbosity"]} if "verbosity" in given else {}
    if "response_format" in given:
        text["format"] = _flat(given["response_format"])
    return text


def _flat(nested: Mapping[str, Any]) -> JsonObject:
    kind = nested["type"]
    inner = dict(nested.get(kind) or {})
    if kind == "allowed_tools":
        inner["tools"] = [_flat(tool) for tool in inner["tools"]]
    shape = inner.get("format")
    if isinstance(shape, Mapping) and "grammar" in shape:
        inner["format"] = {"type": "grammar", **shape["grammar"]}
    return {"type": kind, **inner}


def responses_items(messages: Iterable[Mapping[str, Any]]) -> list[JsonObject]:
    """Chat messages as Responses items, in order."""
    return [item for message in messages for item in _items_of(message)]


def _items_of(message: Mapping[str, Any]) -> list[JsonObject]:
    role = message["role"]
    if role == "assistant":
        return _assistant_items(message)
    content = message.get("content")
    parts = content if isinstance(content, str) else [_input_part(part) for part in content or ()]
    if role == "tool":
        return [{"type": "function_call_output", "call_id": message["tool_call_id"], "output": parts}]
    return [{"type": "message", "role": role, "content": parts}]


def _assistant_items(message: Mapping[str, Any]) -> list[JsonObject]:
    content = message.get("content") or ""
    text = content if isinstance(content, str) else "".join(part.get("text", "") for part in content)
    thoughts = THINK.findall(text)
    text = THINK.sub("", text)
    parts: list[JsonObject] = [{"type": "output_text", "text": text, "annotations": []}] if text else []
    if message.get("refusal"):
        parts.append({"type": "refusal", "refusal": message["refusal"]})
    items: list[JsonObject] = []
    if thoughts:
        summary = [{"type": "summary_text", "text": thought} for thought in thoughts]
        items.append({"type": "reasoning", "id": f"rs_{uuid.uuid4().hex}", "summary": summary})
    calls = message.get("tool_calls") or []
    if parts or not (items or calls):
        identity: JsonObject = {"type": "message", "id": f"msg_{uuid.uuid4().hex}", "role": "assistant"}
        items.append({**identity, "status": "completed", "content": parts})
    items.extend(_call(call) for call in calls)
    items[-1].update({key: message[key] for key in (*TOKEN_KEYS, "routed_experts") if message.get(key) is not None})
    return items


def _call(call: Mapping[str, Any]) -> JsonObject:
    identity: JsonObject = {"id": call["id"], "call_id": call["id"], "status": "completed"}
    if call.get("type") == "custom":
        return {"type": "custom_tool_call", **identity, **call["custom"]}
    function = call["function"]
    return {"type": "function_call", **identity, "name": function["name"], "arguments": function["arguments"]}


def _input_part(part: Mapping[str, Any]) -> JsonObject:
    match part["type"]:
        case "text":
            return {"type": "input_text", "text": part["text"]}
        case "image_url":
            image = part["image_url"]
            return {"type": "input_image", "image_url": image["url"], "detail": image.get("detail") or "auto"}
        case "video_url":
            return {"type": "input_video", "video_url": part["video_url"]["url"]}
        case "input_audio":
            return {"type": "input_audio", "input_audio": part["input_audio"]}
        case "file":
            return {"type": "input_file", **part["file"]}
        case other:
            msg = f"a message part of type {other} has no Responses form"
            raise NotImplementedError(msg)


def first_model_made(items: Sequence[Any]) -> int:
    """The position of the first item that the model made; the length when there is none."""
    for position, item in enumerate(items):
        read = item.get if isinstance(item, Mapping) else lambda key, item=item: getattr(item, key, None)
        if read("type") in _MODEL_MADE or read("role") == "assistant":
            return position
    return len(items)
