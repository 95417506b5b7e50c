"""Token usage of Responses calls, and its sum.

Rules:
* A count that nobody reported is null, never zero; it stays null in a sum while no part of the sum is known.

Source: servers.md §5.1.
"""

from typing import ClassVar

from pydantic import Field

from rollbook.servers.openai.openai_parts import TypedWireModel, WireModel


class NeMoGymResponseInputTokensDetails(WireModel):
    """Tokens of the prompt that came from a cache."""

    cached_tokens: int | None = None


class NeMoGymResponseOutputTokensDetails(WireModel):
    """Tokens of the answer that were reasoning."""

    reasoning_tokens: int | None = None


class NeMoGymResponseUsage(TypedWireModel):
    """Tokens that a response was charged for."""

    always_sent: ClassVar[tuple[str, ...]] = ("input_tokens_details", "output_tokens_details")

    input_tokens: int
    input_tokens_details: NeMoGymResponseInputTokensDetails = Field(default_factory=NeMoGymResponseInputTokensDetails)
    output_tokens: int
    output_tokens_details: NeMoGymResponseOutputTokensDetails = Field(
        default_factory=NeMoGymResponseOutputTokensDetails
    )
    total_tokens: int


def _sum(left: int | None, right: int | None) -> int | None:
    return right if left is None else left if right is None else left + right


def _copied(usage: NeMoGymResponseUsage) -> NeMoGymResponseUsage:
    details = (usage.input_tokens_details.model_copy(), usage.output_tokens_details.model_copy())
    return usage.model_copy(update=dict(zip(("input_tokens_details", "output_tokens_details"), details, strict=True)))


def accumulate_response_usage(
    total: NeMoGymResponseUsage | None, new: NeMoGymResponseUsage | None
) -> NeMoGymResponseUsage | None:
    """The sum of two usages as a new value; null while neither is known."""
    if total is None or new is None:
        known = new if total is None else total
        return _copied(known) if known is not None else None
    cached = _sum(total.input_tokens_details.cached_tokens, new.input_tokens_details.cached_tokens)
    reasoning = _sum(total.output_tokens_details.reasoning_tokens, new.output_tokens_details.reasoning_tokens)
    return NeMoGymResponseUsage(
        input_tokens=total.input_tokens + new.input_tokens,
        input_tokens_details=NeMoGymResponseInputTokensDetails(cached_tokens=cached),
        output_tokens=total.output_tokens + new.output_tokens,
        output_tokens_details=NeMoGymResponseOutputTokensDetails(reasoning_tokens=reasoning),
        total_tokens=total.total_tokens + new.total_tokens,
    )
