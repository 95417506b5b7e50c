"""Items that carry the tokens they were made of.

Rules:
* The three token keys come together or not at all; a part of them is a validation error.
* A class is trainable exactly when `RESPONSES_TO_TRAIN` names its variant.

Source: servers.md §5.1, servers.md §14.6.
"""

from typing import Any

from pydantic import BaseModel

from rollbook.servers.openai.openai_items import (
    NeMoGymEasyInputMessage,
    NeMoGymMessage,
    NeMoGymResponseFunctionToolCall,
    NeMoGymResponseOutputMessage,
    NeMoGymResponseReasoningItem,
)

TOKEN_KEYS = ("prompt_token_ids", "generation_token_ids", "generation_log_probs")
REQUIRED_TOKEN_METADATA_FIELDS = TOKEN_KEYS
TOKEN_METADATA_FIELDS = (*TOKEN_KEYS, "routed_experts")


class TokenIDLogProbMixin(BaseModel):
    """The tokens of one model call: prompt, generation, and one log-probability (nats) per generated token."""

    prompt_token_ids: list[int]
    generation_token_ids: list[int]
    generation_log_probs: list[float]
    routed_experts: Any = None


class NeMoGymEasyInputMessageForTraining(NeMoGymEasyInputMessage, TokenIDLogProbMixin):
    """An easy message with its tokens."""


class NeMoGymMessageForTraining(NeMoGymMessage, TokenIDLogProbMixin):
    """A message with its tokens."""


class NeMoGymResponseOutputMessageForTraining(NeMoGymResponseOutputMessage, TokenIDLogProbMixin):
    """An output message with its tokens."""


class NeMoGymResponseFunctionToolCallForTraining(NeMoGymResponseFunctionToolCall, TokenIDLogProbMixin):
    """A function call with its tokens."""


class NeMoGymResponseReasoningItemForTraining(NeMoGymResponseReasoningItem, TokenIDLogProbMixin):
    """A reasoning item with its tokens."""


RESPONSES_TO_TRAIN: dict[type[BaseModel], type[BaseModel]] = {
    NeMoGymEasyInputMessage: NeMoGymEasyInputMessageForTraining,
    NeMoGymMessage: NeMoGymMessageForTraining,
    NeMoGymResponseOutputMessage: NeMoGymResponseOutputMessageForTraining,
    NeMoGymResponseFunctionToolCall: NeMoGymResponseFunctionToolCallForTraining,
    NeMoGymResponseReasoningItem: NeMoGymResponseReasoningItemForTraining,
}


def training_variant_of(cls: type[BaseModel]) -> type[BaseModel]:
    """The class with tokens for an item class; a training class is its own variant."""
    if issubclass(cls, TokenIDLogProbMixin):
        return cls
    if cls in RESPONSES_TO_TRAIN:
        return RESPONSES_TO_TRAIN[cls]
    names = ", ".join(base.__name__ for base in RESPONSES_TO_TRAIN)
    msg = f"{cls.__name__} carries no tokens; the trainable item classes are {names}"
    raise TypeError(msg)
