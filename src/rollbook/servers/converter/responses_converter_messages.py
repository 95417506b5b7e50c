"""Responses items to chat messages.

Rules:
* Items of one model turn gather into one assistant message; any other item closes the turn first.
* What the chat dialect cannot say is refused by name, never dropped in silence.
* Tokens of a turn are those of its latest item that carries any.

Source: servers.md §5.2, request direction, points 2 to 4.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from rollbook.records.json_values import JsonObject
from rollbook.servers.openai.openai_training import TOKEN_KEYS
from rollbook.servers.openai.openai_unions import inferred_type

_TEXT_PARTS = frozenset({"input_text", "output_text", "text"})


@dataclass(slots=True)
class AssistantTurn:
    """What the model did between two items of somebody else."""

    content: str = ""
    refusal: str = ""
    tool_calls: list[Mapping[str, Any]] = field(default_factory=list)
    tokens: JsonObject = field(default_factory=dict)
    is_open: bool = False

    def take_tokens(self, item: Mapping[str, Any]) -> None:
        """Open the turn, and remember the item's tokens if it has any."""
        self.is_open = True
        if all(item.get(key) is not None for key in TOKEN_KEYS):
            keys = (*TOKEN_KEYS, "routed_experts")
            self.tokens = {key: item[key] for key in keys if item.get(key) is not None}

    def message(self, with_tokens: bool) -> JsonObject:
        """The turn as one chat message."""
        message: JsonObject = {"role": "assistant", "content": self.content or None}
        if self.refusal:
            message["refusal"] = self.refusal
        if self.tool_calls:
            message["tool_calls"] = self.tool_calls
        if with_tokens:
            message.update(self.tokens)
        return message


def user_message(text: str) -> JsonObject:
    """A string input as a message."""
    return {"role": "user", "content": [{"type": "text", "text": text}]}


def chat_messages(items: Iterable[Mapping[str, Any]], with_tokens: bool) -> list[JsonObject]:
    """All items, in order, as chat messages."""
    messages: list[JsonObject] = []
    turn = AssistantTurn()
    for item in items:
        if _joins_turn(turn, item):
            turn.take_tokens(item)
            continue
        if turn.is_open:
            messages.append(turn.message(with_tokens))
            turn = AssistantTurn()
        messages.append(_message_of_others(item))
    if turn.is_open:
        messages.append(turn.message(with_tokens))
    return messages


def _joins_turn(turn: AssistantTurn, item: Mapping[str, Any]) -> bool:
    kind = item.get("type") or inferred_type(item)
    if kind == "reasoning":
        turn.content += "".join(f"<think>{summary['text']}</think>" for summary in item.get("summary") or ())
    elif kind == "function_call":
        turn.tool_calls.append(_tool_call(item))
    elif kind == "message" and item.get("role") == "assistant":
        _add_assistant_message(turn, item)
    else:
        return False
    return True


def _tool_call(item: Mapping[str, Any]) -> JsonObject:
    if item.get("namespace"):
        msg = f"chat completions have no namespaces: function call {item['namespace']}.{item['name']}"
        raise NotImplementedError(msg)
    function = {"name": item["name"], "arguments": item["arguments"]}
    return {"id": item["call_id"], "type": "function", "function": function}


def _add_assistant_message(turn: AssistantTurn, item: Mapping[str, Any]) -> None:
    _refuse_phase(item)
    content = item.get("content")
    for part in [{"type": "output_text", "text": content}] if isinstance(content, str) else content or ():
        if part["type"] in _TEXT_PARTS:
            turn.content += part["text"]
        elif part["type"] == "refusal":
            turn.refusal += part["refusal"]
        else:
            msg = f"an assistant message part of type {part['type']} has no chat form"
            raise NotImplementedError(msg)
    turn.tool_calls.extend(item.get("tool_calls") or ())


def _refuse_phase(item: Mapping[str, Any]) -> None:
    if item.get("phase"):
        msg = f"chat completions have no message phase: {item['phase']}"
        raise NotImplementedError(msg)


def _message_of_others(item: Mapping[str, Any]) -> JsonObject:
    kind = item.get("type") or inferred_type(item)
    if kind == "function_call_output":
        return {"role": "tool", "tool_call_id": item["call_id"], "content": _tool_content(item["output"])}
    if kind != "message":
        msg = f"an input item of type {kind} has no chat form"
        raise NotImplementedError(msg)
    _refuse_phase(item)
    content = item["content"]
    return {"role": item["role"], "content": content if isinstance(content, str) else [chat_part(p) for p in content]}


def _tool_content(output: str | Iterable[Mapping[str, Any]]) -> str | list[JsonObject]:
    if isinstance(output, str):
        return output
    parts = list(output)
    others = sorted({str(part["type"]) for part in parts if part["type"] != "input_text"})
    if others:
        msg = f"a tool output of chat completions is text, and this one holds {', '.join(others)}"
        raise NotImplementedError(msg)
    return [{"type": "text", "text": part["text"]} for part in parts]


def chat_part(part: Mapping[str, Any]) -> JsonObject:
    """A content part of a message that is not the assistant's."""
    match part["type"]:
        case "input_text" | "text":
            return {"type": "text", "text": part["text"]}
        case "input_image":
            return {"type": "image_url", "image_url": _image(part)}
        case "input_video":
            return {"type": "video_url", "video_url": {"url": part["video_url"]}}
        case other:
            msg = f"a message part of type {other} has no chat form"
            raise NotImplementedError(msg)


def _image(part: Mapping[str, Any]) -> JsonObject:
    detail = part.get("detail") or "auto"
    if part.get("file_id") or detail == "original":
        msg = "chat completions take an image by URL with detail auto, low or high; not by file_id, and not as original"
        raise NotImplementedError(msg)
    if not part.get("image_url"):
        msg = "an input_image needs an image_url: a URL or a data URI"
        raise ValueError(msg)
    return {"url": part["image_url"], "detail": detail}


def with_instructions(instructions: str | None, messages: list[JsonObject]) -> list[JsonObject]:
    """The messages with instructions and the leading system messages joined into one, when there are instructions."""
    if not instructions:
        return messages
    leading = 0
    while leading < len(messages) and messages[leading]["role"] in {"system", "developer"}:
        leading += 1
    texts = [instructions, *(_text_of(message["content"]) for message in messages[:leading])]
    return [{"role": "system", "content": "\n\n".join(texts)}, *messages[leading:]]


def _text_of(content: Any) -> str:
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)
