"""Messages of a chat request, one type for each role.

Rules:
* A message is a plain JSON object; these types name its keys for a checker and for whoever writes one.
* What a server takes is wider, see `NeMoGymChatCompletionMessageParam`: it keeps keys that are not named here.

Source: servers.md §5.1.
"""

from typing import Any, Literal, NotRequired

from typing_extensions import TypedDict


class NeMoGymChatCompletionContentPartTextParam(TypedDict):
    """A part of a content: text."""

    text: str
    type: Literal["text"]


class NeMoGymChatCompletionMessageToolCallFunctionParam(TypedDict):
    """The function that a tool call names, with its arguments as JSON text."""

    arguments: str
    name: str


class NeMoGymChatCompletionMessageToolCallParam(TypedDict):
    """A tool call of an assistant's message."""

    id: str
    function: NeMoGymChatCompletionMessageToolCallFunctionParam
    type: Literal["function"]


class NeMoGymChatCompletionSystemMessageParam(TypedDict):
    """What the system says."""

    content: str | list[NeMoGymChatCompletionContentPartTextParam]
    role: Literal["system"]
    name: NotRequired[str]


class NeMoGymChatCompletionUserMessageParam(TypedDict):
    """What the user says: text, or parts of any kind."""

    content: str | list[dict[str, Any]]
    role: Literal["user"]
    name: NotRequired[str]


class NeMoGymChatCompletionAssistantMessageParam(TypedDict):
    """What the assistant answered before."""

    role: Literal["assistant"]
    content: NotRequired[str | list[dict[str, Any]] | None]
    name: NotRequired[str]
    reasoning_content: NotRequired[str | None]
    refusal: NotRequired[str | None]
    tool_calls: NotRequired[list[NeMoGymChatCompletionMessageToolCallParam]]


class NeMoGymChatCompletionAssistantMessageForTrainingParam(NeMoGymChatCompletionAssistantMessageParam):
    """What the assistant answered before, with its tokens and their log-probabilities in nats."""

    prompt_token_ids: list[int]
    generation_token_ids: list[int]
    generation_log_probs: list[float]
    routed_experts: NotRequired[Any]


class NeMoGymChatCompletionToolMessageParam(TypedDict):
    """What a tool answered to the call with this id."""

    content: str | list[NeMoGymChatCompletionContentPartTextParam]
    role: Literal["tool"]
    tool_call_id: str
