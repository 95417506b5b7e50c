"""The streamed form of the Responses dialect: its request made plain, its response replayed as events.

Rules:
* What only streaming clients send (bookkeeping, namespaced tools, tools hoisted into the input) is taken out before
  the strict model looks at the body.
* `StreamedParams` says what of it has to have which shape; a body that it refuses is not made plain.
* A tool inside a namespace is called `namespace__name` on the way in, and gets its namespace back on the way out.
* A response ends in exactly one of `response.completed`, `response.incomplete` and `response.failed`.

Source: servers.md §3.9.
"""

import time
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Final

from pydantic import Discriminator, Tag

from rollbook.records.json_values import JsonObject
from rollbook.servers.kinds.streaming_sse import named_event
from rollbook.servers.openai.openai_parts import WireModel
from rollbook.servers.openai.openai_response import NeMoGymResponse

BOOKKEEPING: Final = frozenset(
    {
        "client_metadata",
        "include",
        "prompt_cache_key",
        "prompt_cache_retention",
        "safety_identifier",
        "service_tier",
        "store",
        "stream",
        "stream_options",
    }
)


class _NamedTool(WireModel):
    name: str


class _Namespace(WireModel):
    name: str
    tools: list[_NamedTool] | None = None


class _NamespacedCall(WireModel):
    namespace: str
    name: str


def _tool_kind(tool: Any) -> str:
    return "namespace" if _is_namespace(tool) else "plain"


_Tools = list[
    Annotated[Annotated[_Namespace, Tag("namespace")] | Annotated[Any, Tag("plain")], Discriminator(_tool_kind)]
]


class _HoistedTools(WireModel):
    tools: _Tools | None = None


def _item_kind(item: Any) -> str:
    if _hoists_tools(item):
        return "additional_tools"
    return "namespaced_call" if _has_namespace(item) else "plain"


_Item = Annotated[
    Annotated[_HoistedTools, Tag("additional_tools")]
    | Annotated[_NamespacedCall, Tag("namespaced_call")]
    | Annotated[Any, Tag("plain")],
    Discriminator(_item_kind),
]


def _input_kind(value: Any) -> str:
    return "items" if isinstance(value, list) else "other"


class StreamedParams(WireModel):
    """What has to hold of a streamed request before it can be made plain; the strict model judges the rest."""

    tools: _Tools | None = None
    input: Annotated[
        Annotated[list[_Item], Tag("items")] | Annotated[Any, Tag("other")], Discriminator(_input_kind)
    ] = None


@dataclass(frozen=True, slots=True)
class PlainRequest:
    """A request in its plain form; `namespaces` maps a flat tool name to its namespace and its own name."""

    body: JsonObject
    namespaces: Mapping[str, tuple[str, str]]


def plain_request(body: Mapping[str, Any]) -> PlainRequest:
    """The request in the form that the strict model validates."""
    plain: JsonObject = {key: value for key, value in body.items() if key not in BOOKKEEPING}
    tools = list(body.get("tools") or [])
    if isinstance(body.get("input"), list):
        items = [item for item in body["input"] if not _hoists_tools(item)]
        tools += [tool for item in body["input"] if _hoists_tools(item) for tool in item.get("tools") or ()]
        plain["input"] = [_flat_call(item) for item in items]
    namespaces: dict[str, tuple[str, str]] = {}
    flat = [tool for given in tools for tool in _flat_tools(given, namespaces)]
    if flat or "tools" in body:
        plain["tools"] = flat
    return PlainRequest(plain, namespaces)


def _hoists_tools(item: Any) -> bool:
    return isinstance(item, dict) and item.get("type") == "additional_tools"


def _has_namespace(item: Any) -> bool:
    return isinstance(item, dict) and item.get("type") == "function_call" and bool(item.get("namespace"))


def _is_namespace(tool: Any) -> bool:
    return isinstance(tool, dict) and tool.get("type") == "namespace"


def _flat_call(item: Any) -> Any:
    if _has_namespace(item):
        kept = {key: value for key, value in item.items() if key != "namespace"}
        return {**kept, "name": f"{item['namespace']}__{item['name']}"}
    return item


def _flat_tools(tool: Any, namespaces: dict[str, tuple[str, str]]) -> Iterator[Any]:
    if not _is_namespace(tool):
        yield tool
        return
    for inner in tool.get("tools") or ():
        flat = f"{tool['name']}__{inner['name']}"
        namespaces[flat] = (tool["name"], inner["name"])
        yield {**inner, "name": flat}


def restored(item: JsonObject, namespaces: Mapping[str, tuple[str, str]]) -> JsonObject:
    """An output item whose call has its namespace back."""
    if item["type"] == "function_call" and item["name"] in namespaces:
        namespace, name = namespaces[str(item["name"])]
        return {**item, "namespace": namespace, "name": name}
    return item


@dataclass(slots=True)
class _Sequence:
    """Events with their running number."""

    number: int = 0
    sent: list[bytes] = field(default_factory=list)

    def add(self, kind: str, **data: object) -> None:
        self.sent.append(named_event(kind, {"type": kind, "sequence_number": self.number, **data}))
        self.number += 1


def response_events(response: NeMoGymResponse, namespaces: Mapping[str, tuple[str, str]]) -> list[bytes]:
    """All events of a response, in order."""
    whole: JsonObject = response.model_dump(mode="json", exclude_unset=True)
    items = [restored(item, namespaces) for item in whole["output"]]  # type: ignore[attr-defined] # a dumped list
    begun = {**whole, "status": "in_progress", "output": [], "usage": None, "incomplete_details": None}
    sequence = _Sequence()
    sequence.add("response.created", response=begun)
    sequence.add("response.in_progress", response=begun)
    for index, item in enumerate(items):
        _add_item(sequence, index, item)
    status = whole.get("status") or "completed"
    last = status if status in {"incomplete", "failed"} else "completed"
    sequence.add(f"response.{last}", response={**whole, "status": status, "output": items})
    return sequence.sent


def failed_events(failure: Mapping[str, Any], model: str | None) -> list[bytes]:
    """The events of a call that failed."""
    error = {"code": failure["type"], "message": failure["message"]}
    response: JsonObject = {
        "id": f"resp_{uuid.uuid4().hex}",
        "object": "response",
        "created_at": time.time(),
        "model": model or "",
        "status": "failed",
        "error": error,
        "output": [],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": None,
    }
    sequence = _Sequence()
    sequence.add("response.created", response={**response, "status": "in_progress", "error": None})
    sequence.add("response.failed", response=response)
    return sequence.sent


def _add_item(sequence: _Sequence, index: int, item: Mapping[str, Any]) -> None:
    begun: JsonObject = {**item, "status": "in_progress"} if "status" in item else dict(item)
    for key in _EMPTIED.get(item["type"], ()):
        begun[key] = "" if key == "arguments" else []
    sequence.add("response.output_item.added", output_index=index, item=begun)
    place = {"item_id": item.get("id") or item.get("call_id"), "output_index": index}
    if item["type"] == "message":
        _add_message(sequence, place, item["content"])
    elif item["type"] == "reasoning":
        _add_summary(sequence, place, item.get("summary") or [])
    elif item["type"] == "function_call":
        arguments = item["arguments"]
        sequence.add("response.function_call_arguments.delta", **place, delta=arguments)
        sequence.add("response.function_call_arguments.done", **place, name=item["name"], arguments=arguments)
    sequence.add("response.output_item.done", output_index=index, item=item)


_EMPTIED: Final = {"message": ("content",), "reasoning": ("summary",), "function_call": ("arguments",)}


def _add_message(sequence: _Sequence, place: Mapping[str, Any], content: Any) -> None:
    parts = [{"type": "output_text", "text": content, "annotations": []}] if isinstance(content, str) else content
    for number, part in enumerate(parts):
        where = {**place, "content_index": number}
        name, key = ("refusal", "refusal") if part["type"] == "refusal" else ("output_text", "text")
        sequence.add("response.content_part.added", **where, part={**part, key: ""})
        sequence.add(f"response.{name}.delta", **where, delta=part[key])
        sequence.add(f"response.{name}.done", **where, **{key: part[key]})
        sequence.add("response.content_part.done", **where, part=part)


def _add_summary(sequence: _Sequence, place: Mapping[str, Any], summary: list[Mapping[str, Any]]) -> None:
    for number, part in enumerate(summary):
        where = {**place, "summary_index": number}
        sequence.add("response.reasoning_summary_part.added", **where, part={**part, "text": ""})
        sequence.add("response.reasoning_summary_text.delta", **where, delta=part["text"])
        sequence.add("response.reasoning_summary_text.done", **where, text=part["text"])
        sequence.add("response.reasoning_summary_part.done", **where, part=part)
