"""Which class a JSON item becomes.

Rules:
* One look at `type`, `role` and the token keys decides; no class is tried in turn.
* An input item without `type` is known by its shape; an output item without `type` is an error.
* An object with any of the token keys becomes the training variant, which then asks for all three.

Source: servers.md §5.1.
"""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Discriminator, SerializeAsAny, Tag

from rollbook.servers.openai.openai_items import (
    NeMoGymEasyInputMessage,
    NeMoGymFunctionCallOutput,
    NeMoGymHostedItem,
    NeMoGymItemReference,
    NeMoGymMessage,
    NeMoGymResponseFunctionToolCall,
    NeMoGymResponseOutputMessage,
    NeMoGymResponseReasoningItem,
)
from rollbook.servers.openai.openai_training import (
    TOKEN_KEYS,
    NeMoGymEasyInputMessageForTraining,
    NeMoGymMessageForTraining,
    NeMoGymResponseFunctionToolCallForTraining,
    NeMoGymResponseOutputMessageForTraining,
    NeMoGymResponseReasoningItemForTraining,
)

_OF_CLASS: dict[type, str] = {
    NeMoGymEasyInputMessage: "easy",
    NeMoGymMessage: "message",
    NeMoGymResponseOutputMessage: "output_message",
    NeMoGymResponseFunctionToolCall: "function_call",
    NeMoGymResponseReasoningItem: "reasoning",
    NeMoGymFunctionCallOutput: "function_call_output",
    NeMoGymItemReference: "item_reference",
    NeMoGymHostedItem: "hosted",
    NeMoGymEasyInputMessageForTraining: "easy_t",
    NeMoGymMessageForTraining: "message_t",
    NeMoGymResponseOutputMessageForTraining: "output_message_t",
    NeMoGymResponseFunctionToolCallForTraining: "function_call_t",
    NeMoGymResponseReasoningItemForTraining: "reasoning_t",
}
_OWN_CLASS = frozenset({"function_call", "reasoning", "function_call_output", "item_reference"})
_TRAINABLE = frozenset({"easy", "message", "output_message", "function_call", "reasoning"})
_TOKENS = frozenset(TOKEN_KEYS)
_SHAPES: tuple[tuple[frozenset[str], str], ...] = (
    (frozenset({"call_id", "output"}), "function_call_output"),
    (frozenset({"name", "arguments"}), "function_call"),
    (frozenset({"summary"}), "reasoning"),
)


def inferred_type(item: Mapping[str, Any]) -> str | None:
    """The `type` of an untyped input item, by its shape."""
    if "role" in item:
        return "message"
    for keys, kind in _SHAPES:
        if keys <= item.keys():
            return kind
    return "item_reference" if item.keys() == {"id"} else None


def _message_tag(item: Mapping[str, Any], is_output: bool) -> str:
    if not isinstance(item.get("content"), list):
        return "easy"
    if item.get("role") == "assistant":
        return "output_message" if is_output or "id" in item else "easy"
    return "message" if item.get("type") == "message" else "easy"


def _tag_of_json(item: Mapping[str, Any], kind: str | None, is_output: bool) -> str | None:
    if kind in _OWN_CLASS:
        tag = kind
    elif kind is None:
        return None
    else:
        tag = _message_tag(item, is_output) if kind == "message" else "hosted"
    if _TOKENS.isdisjoint(item) or tag not in _TRAINABLE or all(item.get(key) is None for key in TOKEN_KEYS):
        return tag
    return f"{tag}_t"


def _tag_of_object(item: Any) -> str | None:
    return next((_OF_CLASS[cls] for cls in type(item).__mro__ if cls in _OF_CLASS), None)


def input_tag(item: Any) -> str | None:
    """The class tag of an input item, given as an object or as JSON."""
    tag = _OF_CLASS.get(type(item))
    if tag is not None:
        return tag
    if not isinstance(item, dict):
        return _tag_of_object(item)
    kind = item.get("type")
    return _tag_of_json(item, inferred_type(item) if kind is None else kind, is_output=False)


def output_tag(item: Any) -> str | None:
    """The class tag of an output item, given as an object or as JSON."""
    tag = _OF_CLASS.get(type(item))
    if tag is not None:
        return tag
    if not isinstance(item, dict):
        return _tag_of_object(item)
    return _tag_of_json(item, item.get("type"), is_output=True)


_ITEM = (
    Annotated[NeMoGymEasyInputMessage, Tag("easy")]
    | Annotated[NeMoGymMessage, Tag("message")]
    | Annotated[NeMoGymResponseOutputMessage, Tag("output_message")]
    | Annotated[NeMoGymResponseFunctionToolCall, Tag("function_call")]
    | Annotated[NeMoGymResponseReasoningItem, Tag("reasoning")]
    | Annotated[NeMoGymFunctionCallOutput, Tag("function_call_output")]
    | Annotated[NeMoGymItemReference, Tag("item_reference")]
    | Annotated[NeMoGymHostedItem, Tag("hosted")]
    | Annotated[NeMoGymEasyInputMessageForTraining, Tag("easy_t")]
    | Annotated[NeMoGymMessageForTraining, Tag("message_t")]
    | Annotated[NeMoGymResponseOutputMessageForTraining, Tag("output_message_t")]
    | Annotated[NeMoGymResponseFunctionToolCallForTraining, Tag("function_call_t")]
    | Annotated[NeMoGymResponseReasoningItemForTraining, Tag("reasoning_t")]
)

NeMoGymResponseInputItem = Annotated[
    _ITEM,
    Discriminator(
        input_tag,
        custom_error_type="input_item_type",
        custom_error_message="an input item needs a `type` (or a `role`) that says what it is",
    ),
    SerializeAsAny(),
]
NeMoGymResponseOutputItem = Annotated[
    _ITEM,
    Discriminator(
        output_tag,
        custom_error_type="output_item_type",
        custom_error_message="an output item needs a `type` that says what it is",
    ),
    SerializeAsAny(),
]
NeMoGymResponseInput = list[NeMoGymResponseInputItem]
