"""The request and the response of the Responses dialect.

Rules:
* A request with a field that is not named here is refused: a misspelt parameter must not be ignored in silence.
* Any `response.output` can be appended to the next `input`: fields that only an output carries are dropped first.
* A response keeps what it was sent, fields unknown to us included; `exclude_unset` gives back what came in.

Source: servers.md §5.1.
"""

from typing import Annotated, Any, ClassVar, Literal

from pydantic import ConfigDict, Discriminator, Field, SerializeAsAny, Tag, field_validator

from rollbook.servers.openai.openai_items import (
    NeMoGymFunctionCallOutput,
    NeMoGymResponseFunctionToolCall,
    NeMoGymResponseOutputMessage,
    NeMoGymResponseReasoningItem,
)
from rollbook.servers.openai.openai_parts import (
    NeMoGymResponseOutputText,
    ReadsLikeMapping,
    TypedWireModel,
    WireModel,
    text_or_list,
)
from rollbook.servers.openai.openai_tools import JsonField, NeMoGymToolChoice, NeMoGymToolParam
from rollbook.servers.openai.openai_training import TOKEN_KEYS
from rollbook.servers.openai.openai_unions import NeMoGymResponseInput, NeMoGymResponseOutputItem, input_tag
from rollbook.servers.openai.openai_usage import NeMoGymResponseUsage

_TOKEN_FIELDS = frozenset({*TOKEN_KEYS, "routed_experts"})
_REPLAYED_FIELDS = {
    tag: frozenset(cls.model_fields) | _TOKEN_FIELDS
    for tag, cls in (
        ("output_message", NeMoGymResponseOutputMessage),
        ("function_call", NeMoGymResponseFunctionToolCall),
        ("reasoning", NeMoGymResponseReasoningItem),
        ("function_call_output", NeMoGymFunctionCallOutput),
    )
}


def _fields_of(item: dict[str, Any]) -> frozenset[str] | None:
    """Return the fields that an item keeps; None: all. A type that is no message's is its tag, but for the tokens."""
    kind = item.get("type")
    if isinstance(kind, str) and kind != "message":
        return _REPLAYED_FIELDS.get(kind) if kind != "output_message" else None
    return _REPLAYED_FIELDS.get((input_tag(item) or "").removesuffix("_t"))


def replayed(item: Any) -> Any:
    """An input item without the fields that only a provider's output carries, and without nulls."""
    if not isinstance(item, dict):
        return item
    if item.get("role", "assistant") != "assistant" and item.get("type", "message") == "message":
        return item
    fields = _fields_of(item)
    if fields is None or (fields.issuperset(item) and None not in item.values()):
        return item
    return {key: value for key, value in item.items() if key in fields and value is not None}


class NeMoGymReasoning(ReadsLikeMapping):
    """How much to reason, and whether to summarise it."""

    effort: str | None = None
    generate_summary: str | None = None
    summary: str | None = None


class NeMoGymResponseCreateParamsNonStreaming(WireModel):
    """The body of a Responses request; unknown fields are refused."""

    model_config = ConfigDict(extra="forbid", protected_namespaces=())

    background: bool | None = None
    include: list[str] | None = None
    input: Annotated[
        Annotated[str, Tag("text")] | Annotated[NeMoGymResponseInput, Tag("list")],
        Discriminator(text_or_list),
        SerializeAsAny(),
    ]
    instructions: str | None = None
    max_output_tokens: int | None = None
    max_tool_calls: int | None = None
    metadata: dict[str, str] | None = None
    model: str | None = None
    parallel_tool_calls: bool | None = True
    previous_response_id: str | None = None
    prompt: JsonField | None = None
    reasoning: NeMoGymReasoning | None = None
    service_tier: str | None = None
    store: bool | None = None
    context_management: list[JsonField] | None = None
    conversation: str | JsonField | None = None
    moderation: JsonField | None = None
    prompt_cache_key: str | None = None
    prompt_cache_retention: str | None = None
    safety_identifier: str | None = None
    stream_options: JsonField | None = None
    temperature: float | None = None
    text: JsonField | None = None
    tool_choice: NeMoGymToolChoice = "auto"
    tools: list[NeMoGymToolParam] = Field(default_factory=list)
    top_logprobs: int | None = None
    top_p: float | None = None
    truncation: Literal["auto", "disabled"] | None = None
    user: str | None = None
    stream: Literal[False] | None = None

    @field_validator("input", mode="before")
    @classmethod
    def _without_provider_fields(cls, value: Any) -> Any:
        return [replayed(item) for item in value] if isinstance(value, list) else value


class NeMoGymResponseError(WireModel):
    """Why a response failed."""

    code: str
    message: str


class NeMoGymIncompleteDetails(ReadsLikeMapping):
    """Why a response is incomplete."""

    reason: str | None = None


class NeMoGymResponse(TypedWireModel):
    """What a Responses call answers."""

    always_sent: ClassVar[tuple[str, ...]] = ("object", "parallel_tool_calls", "tool_choice", "tools")

    id: str
    created_at: float
    error: NeMoGymResponseError | None = None
    incomplete_details: NeMoGymIncompleteDetails | None = None
    instructions: str | list[Any] | None = None
    metadata: dict[str, Any] | None = None
    model: str
    object: Literal["response"] = "response"
    output: list[NeMoGymResponseOutputItem]
    parallel_tool_calls: bool | None = True
    temperature: float | None = None
    tool_choice: str | JsonField = "auto"
    tools: list[JsonField] = Field(default_factory=list)
    top_p: float | None = None
    background: bool | None = None
    completed_at: float | None = None
    conversation: str | JsonField | None = None
    max_output_tokens: int | None = None
    max_tool_calls: int | None = None
    previous_response_id: str | None = None
    prompt: JsonField | None = None
    prompt_cache_key: str | None = None
    reasoning: NeMoGymReasoning | None = None
    safety_identifier: str | None = None
    service_tier: str | None = None
    status: Literal["completed", "failed", "in_progress", "cancelled", "queued", "incomplete"] | None = None
    text: JsonField | None = None
    top_logprobs: int | None = None
    truncation: str | None = None
    usage: NeMoGymResponseUsage | None = None
    user: str | None = None

    @property
    def output_text(self) -> str:
        """All text that the model wrote, in order, joined without a separator."""
        return "".join(
            part.text
            for item in self.output
            if item.type == "message" and isinstance(item.content, list)
            for part in item.content
            if isinstance(part, NeMoGymResponseOutputText)
        )
