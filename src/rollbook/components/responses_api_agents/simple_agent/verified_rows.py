"""Which verifiers' replies are verified rows as they stand.

Rules:
* What passes here, `SimpleAgentVerifyResponse` would take and read alike. What does not pass may still be a row: the
  class is asked.
* Left to the class: what it warns of, reads otherwise or keeps back, the tokens of items, and rare items and parts.
* What is looked at nowhere else is looked at as text: UTF-8, and no deeper than the class's writer goes.

Source: servers.md §5.1, §6.1.
"""

from typing import Annotated, Final, Literal

from msgspec import DecodeError, Meta, Raw, Struct, field
from msgspec.json import Decoder
from pydantic_core import from_json

Count = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
ItemStatus = Literal["in_progress", "completed", "incomplete"]
ResponseStatus = Literal["completed", "failed", "in_progress", "cancelled", "queued", "incomplete"]
SHALLOW: Final = 200


class Shape(Struct, gc=False):
    """What JSON has to look like: read, and thrown away. Fields in the order that they are written in read quicker."""


class AnyObject(Shape):
    """An object, whatever it has."""


class Asked(Shape):
    """A request, as far as it is looked at."""

    input: str | list[Raw]


class OutputText(Shape, kw_only=True):
    """A text of a message."""

    annotations: list[Raw] = field(default_factory=list)
    text: str
    type: Literal["output_text"]
    logprobs: list[Raw] | None = None


class SummaryText(Shape):
    """A part of a thought's summary."""

    text: str
    type: Literal["summary_text"] = "summary_text"


class ReasoningText(Shape):
    """A part of a thought in full."""

    text: str
    type: Literal["reasoning_text"] = "reasoning_text"


class WithoutTokens(Shape):
    """An item that carries no tokens."""

    prompt_token_ids: None = None
    generation_token_ids: None = None
    generation_log_probs: None = None


class OutputMessage(WithoutTokens, tag_field="type", tag="message", kw_only=True):
    """A message that the model wrote."""

    id: str
    content: list[OutputText]
    role: Literal["assistant"]
    status: ItemStatus = "completed"
    phase: str | None = None


class FunctionCall(WithoutTokens, tag_field="type", tag="function_call", kw_only=True):
    """A call of a tool."""

    arguments: str
    call_id: str
    name: str
    id: str | None = None
    status: ItemStatus | None = None
    namespace: str | None = None


class FunctionCallOutput(Shape, tag_field="type", tag="function_call_output"):
    """What a tool answered."""

    call_id: str
    output: str
    id: str | None = None
    status: ItemStatus | None = None


class Thought(WithoutTokens, tag_field="type", tag="reasoning", kw_only=True):
    """What the model thought."""

    id: str
    summary: list[SummaryText]
    encrypted_content: str | None = None
    content: list[ReasoningText] | None = None
    status: None = None


class InputDetails(Shape):
    """Which tokens of a prompt they were."""

    cached_tokens: Count | None = None


class OutputDetails(Shape):
    """Which tokens of an answer they were."""

    reasoning_tokens: Count | None = None


class Usage(Shape, kw_only=True):
    """The tokens of a response."""

    input_tokens: Count
    input_tokens_details: InputDetails = field(default_factory=InputDetails)
    output_tokens: Count
    output_tokens_details: OutputDetails = field(default_factory=OutputDetails)
    total_tokens: Count


class Incomplete(Shape):
    """Why a response is incomplete."""

    reason: str | None = None


class Reasoning(Shape):
    """How much was to be reasoned."""

    effort: str | None = None
    generate_summary: str | None = None
    summary: str | None = None


class Response(Shape, kw_only=True):
    """A response; one that tells of an error is left to the class."""

    id: str
    created_at: float
    error: None = None
    incomplete_details: Incomplete | None = None
    instructions: str | list[Raw] | None = None
    metadata: AnyObject | None = None
    model: str
    object: Literal["response"] = "response"
    output: list[OutputMessage | FunctionCall | FunctionCallOutput | Thought]
    parallel_tool_calls: bool | None = True
    temperature: float | None = None
    tool_choice: str = "auto"
    tools: list[AnyObject] = field(default_factory=list)
    top_p: float | None = None
    background: bool | None = None
    completed_at: float | None = None
    conversation: str | None = None
    max_output_tokens: Count | None = None
    max_tool_calls: Count | None = None
    previous_response_id: str | None = None
    prompt: AnyObject | None = None
    prompt_cache_key: str | None = None
    reasoning: Reasoning | None = None
    safety_identifier: str | None = None
    service_tier: str | None = None
    status: ResponseStatus | None = None
    text: AnyObject | None = None
    top_logprobs: Count | None = None
    truncation: str | None = None
    usage: Usage | None = None
    user: str | None = None


class VerifiedRow(Shape):
    """A verified row. A kind of failure is the class's, which warns of one that is not known; so is a rollout's id."""

    responses_create_params: Asked
    response: Response
    reward: float
    mask_sample: bool = False
    failure_kind: None = None
    failure_reason: str | None = None
    capture_rollout_id: None = None
    rollout_id: None = field(default=None, name="_ng_rollout_id")


_VERIFIED_ROW: Final = Decoder(VerifiedRow)


def is_verified(written: bytes) -> bool:
    """Whether a verifier's reply is a verified row that its class would take as it stands."""
    try:
        _VERIFIED_ROW.decode(written)
        if not written.isascii():
            written.decode()
        openings = len(written) - len(written.replace(b"[", b"").replace(b"{", b""))
        if openings > SHALLOW:
            from_json(written, allow_inf_nan=False)
    except (DecodeError, ValueError, RecursionError):
        return False
    return True
