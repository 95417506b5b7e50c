"""Token usage of Responses calls, and its sum.

Rules:
* A count that nobody reported is null, never zero; so is its sum with others, which would tell too little.

Source: servers.md §5.1.
"""

from collections.abc import Iterable
from typing import ClassVar, Self

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

    @classmethod
    def sum_from_list(cls, usages: "Iterable[NeMoGymResponseUsage | None]") -> Self:
        """The sum of all usages that are known; all zero without any."""
        known = [usage for usage in usages if usage is not None]
        cached = _sum(usage.input_tokens_details.cached_tokens for usage in known)
        reasoning = _sum(usage.output_tokens_details.reasoning_tokens for usage in known)
        return cls(
            input_tokens=sum(usage.input_tokens for usage in known),
            input_tokens_details=NeMoGymResponseInputTokensDetails(cached_tokens=cached),
            output_tokens=sum(usage.output_tokens for usage in known),
            output_tokens_details=NeMoGymResponseOutputTokensDetails(reasoning_tokens=reasoning),
            total_tokens=sum(usage.total_tokens for usage in known),
        )


def _sum(counts: Iterable[int | None]) -> int | None:
    total = 0
    for count in counts:
        if count is None:
            return None
        total += count
    return total


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
    return NeMoGymResponseUsage.sum_from_list([total, new])
