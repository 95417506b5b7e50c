"""The request and the response of the Chat dialect.

Rules:
* A request with a field that is not named here is refused; messages and their parts are plain JSON objects.
* A completion keeps what it was sent, fields unknown to us included.
* The training variants carry the three token keys together, on the assistant's message.

Source: servers.md §5.1.
"""

from typing import Annotated, Any, ClassVar, Final, Literal, NotRequired

from pydantic import ConfigDict, Discriminator, Field, Tag
from typing_extensions import TypedDict

from rollbook.servers.openai.openai_parts import ReadsLikeMapping, TypedWireModel, WireModel
from rollbook.servers.openai.openai_training import TOKEN_KEYS, TokenIDLogProbMixin

CHAT_REQUEST_PROVIDER_EXTENSION_FIELDS: Final = frozenset({"chat_template_kwargs", "thinking", "output_config"})
"""Fields of a request that vendors added to the dialect."""

_OPEN = ConfigDict(extra="allow")


class NeMoGymFunction(ReadsLikeMapping):
    """The function that a tool call names, with its arguments as JSON text."""

    arguments: str
    name: str


class NeMoGymChatCompletionMessageToolCall(TypedWireModel, ReadsLikeMapping):
    """A tool call of an assistant's message."""

    id: str
    function: NeMoGymFunction
    type: Literal["function"] = "function"


class NeMoGymChatCompletionMessageCustomToolCall(TypedWireModel, ReadsLikeMapping):
    """A call of a custom tool, whose input is free text."""

    id: str
    custom: dict[str, Any]
    type: Literal["custom"]


def _call_tag(call: Any) -> str:
    kind = call.get("type") if isinstance(call, dict) else getattr(call, "type", None)
    return "custom" if kind == "custom" else "function"


NeMoGymChatCompletionToolCall = Annotated[
    Annotated[NeMoGymChatCompletionMessageToolCall, Tag("function")]
    | Annotated[NeMoGymChatCompletionMessageCustomToolCall, Tag("custom")],
    Discriminator(_call_tag),
]


class NeMoGymChatCompletionMessage(WireModel):
    """What the assistant answered."""

    content: str | None = None
    refusal: str | None = None
    role: Literal["assistant"] = "assistant"
    annotations: list[Any] | None = None
    audio: dict[str, Any] | None = None
    function_call: dict[str, Any] | None = None
    tool_calls: list[NeMoGymChatCompletionToolCall] | None = None


class NeMoGymChatCompletionMessageForTraining(NeMoGymChatCompletionMessage, TokenIDLogProbMixin):
    """What the assistant answered, with its tokens."""


def _message_tag(message: Any) -> str:
    if isinstance(message, dict):
        return "training" if any(message.get(key) is not None for key in TOKEN_KEYS) else "plain"
    return "training" if isinstance(message, TokenIDLogProbMixin) else "plain"


class NeMoGymTokenLogprob(ReadsLikeMapping):
    """One token with its log-probability in nats."""

    token: str
    logprob: float
    bytes: list[int] | None = None
    top_logprobs: list[Any] = Field(default_factory=list)


class NeMoGymChoiceLogprobs(ReadsLikeMapping):
    """Log-probabilities of a choice's tokens."""

    content: list[NeMoGymTokenLogprob] | None = None
    refusal: list[NeMoGymTokenLogprob] | None = None


class NeMoGymChoice(WireModel):
    """One of a completion's answers."""

    finish_reason: str | None
    index: int = 0
    logprobs: NeMoGymChoiceLogprobs | None = None
    message: Annotated[
        Annotated[NeMoGymChatCompletionMessage, Tag("plain")]
        | Annotated[NeMoGymChatCompletionMessageForTraining, Tag("training")],
        Discriminator(_message_tag),
    ]


class NeMoGymCompletionUsage(WireModel):
    """Tokens that a completion was charged for."""

    completion_tokens: int
    prompt_tokens: int
    total_tokens: int
    completion_tokens_details: dict[str, Any] | None = None
    prompt_tokens_details: dict[str, Any] | None = None


class NeMoGymChatCompletion(TypedWireModel):
    """What a chat completion call answers."""

    always_sent: ClassVar[tuple[str, ...]] = ("object",)

    id: str
    choices: list[NeMoGymChoice]
    created: int
    model: str
    object: Literal["chat.completion"] = "chat.completion"
    service_tier: str | None = None
    system_fingerprint: str | None = None
    usage: NeMoGymCompletionUsage | None = None


class NeMoGymChatCompletionMessageParam(TypedDict):
    """A message of the request; assistants may carry `tool_calls`, reasoning and tokens, tools a `tool_call_id`."""

    __pydantic_config__ = _OPEN  # type: ignore[misc] # pydantic reads the attribute, which TypedDict does not know

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: NotRequired[str | list[dict[str, Any]] | None]
    name: NotRequired[str | None]
    tool_call_id: NotRequired[str]
    tool_calls: NotRequired[list[dict[str, Any]] | None]


class NeMoGymChatCompletionToolParam(TypedDict):
    """A tool of the request, its definition nested under its type."""

    __pydantic_config__ = _OPEN  # type: ignore[misc] # as above

    type: str
    function: NotRequired[dict[str, Any]]
    custom: NotRequired[dict[str, Any]]


class NeMoGymChatCompletionCreateParamsNonStreaming(WireModel):
    """The body of a chat completion request; unknown fields are refused."""

    model_config = ConfigDict(extra="forbid", protected_namespaces=())

    messages: list[NeMoGymChatCompletionMessageParam]
    model: str | None = None
    audio: dict[str, Any] | None = None
    frequency_penalty: float | None = None
    function_call: str | dict[str, Any] | None = None
    functions: list[dict[str, Any]] | None = None
    logit_bias: dict[str, int] | None = None
    logprobs: bool | None = None
    max_completion_tokens: int | None = None
    max_tokens: int | None = None
    metadata: dict[str, str] | None = None
    modalities: list[str] | None = None
    moderation: dict[str, Any] | None = None
    n: int | None = None
    parallel_tool_calls: bool | None = None
    prediction: dict[str, Any] | None = None
    presence_penalty: float | None = None
    prompt_cache_key: str | None = None
    prompt_cache_retention: str | None = None
    reasoning_effort: str | None = None
    response_format: dict[str, Any] | None = None
    safety_identifier: str | None = None
    seed: int | None = None
    service_tier: str | None = None
    stop: str | list[str] | None = None
    store: bool | None = None
    stream: Literal[False] | None = None
    stream_options: dict[str, Any] | None = None
    temperature: float | None = None
    tool_choice: str | dict[str, Any] | None = None
    tools: list[NeMoGymChatCompletionToolParam] | None = None
    top_logprobs: int | None = None
    top_p: float | None = None
    user: str | None = None
    verbosity: str | None = None
    web_search_options: dict[str, Any] | None = None
    chat_template_kwargs: dict[str, Any] | None = None
    thinking: dict[str, Any] | None = None
    output_config: dict[str, Any] | None = None
