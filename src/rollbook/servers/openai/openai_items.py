"""Items: what the input and the output of a Responses call are lists of.

Rules:
* An item keeps fields that are not named here; a request drops them from a replayed output item.
* `type` is always written, except by an easy message, which goes out as it came in.
* Which class a JSON object becomes is decided in `openai_unions`, not by trying classes in turn.

Source: servers.md §5.1.
"""

from typing import Any, ClassVar, Literal, Self

from pydantic import Field, SerializeAsAny, model_validator

from rollbook.servers.openai.openai_parts import (
    NeMoGymInputContentPart,
    NeMoGymMessageContent,
    NeMoGymOutputContentPart,
    NeMoGymReasoningText,
    NeMoGymSummary,
    TypedWireModel,
    WireModel,
)

ItemStatus = Literal["in_progress", "completed", "incomplete"]


class NeMoGymEasyInputMessage(WireModel):
    """A message in its short form: content is a string or a list of parts.

    An assistant message may leave content out when it carries chat-shaped `tool_calls`.
    """

    content: NeMoGymMessageContent | None = None
    role: Literal["user", "assistant", "system", "developer"]
    type: Literal["message"] = "message"
    phase: str | None = None

    @model_validator(mode="after")
    def _content_is_there(self) -> Self:
        if self.content is None and self.role != "assistant":
            msg = f"a {self.role} message needs `content`: a string, or a list of parts"
            raise ValueError(msg)
        return self


class NeMoGymMessage(TypedWireModel):
    """A message of user, system or developer whose content is a list of parts."""

    content: list[NeMoGymInputContentPart]
    role: Literal["user", "system", "developer"]
    status: ItemStatus | None = None
    type: Literal["message"] = "message"


class NeMoGymResponseOutputMessage(TypedWireModel):
    """A message that the model wrote."""

    always_sent: ClassVar[tuple[str, ...]] = ("type", "role", "status")

    id: str
    content: list[NeMoGymOutputContentPart]
    role: Literal["assistant"] = "assistant"
    status: ItemStatus = "completed"
    type: Literal["message"] = "message"
    phase: str | None = None


class NeMoGymResponseReasoningItem(TypedWireModel):
    """What the model thought, as summaries and, from some providers, as encrypted or full content.

    `status` is read and never written: no request takes it back.
    """

    id: str
    summary: list[SerializeAsAny[NeMoGymSummary]]
    type: Literal["reasoning"] = "reasoning"
    encrypted_content: str | None = None
    content: list[SerializeAsAny[NeMoGymReasoningText]] | None = None
    status: Any = Field(default=None, exclude=True, repr=False)


class NeMoGymResponseFunctionToolCall(TypedWireModel):
    """A call of a function tool; `arguments` is JSON text as the model wrote it, well-formed or not."""

    arguments: str
    call_id: str
    name: str
    type: Literal["function_call"] = "function_call"
    id: str | None = None
    status: ItemStatus | None = None
    namespace: str | None = None


class NeMoGymFunctionCallOutput(TypedWireModel):
    """What a function tool answered to the call with the same `call_id`."""

    call_id: str
    output: NeMoGymMessageContent
    type: Literal["function_call_output"] = "function_call_output"
    id: str | None = None
    status: ItemStatus | None = None


class NeMoGymItemReference(TypedWireModel):
    """The id of an item that the provider keeps."""

    id: str
    type: Literal["item_reference"] = "item_reference"


class NeMoGymHostedItem(TypedWireModel):
    """An item of a tool that the provider runs itself, passed through as it is."""

    type: Literal[
        "additional_tools",
        "apply_patch_call",
        "apply_patch_call_output",
        "code_interpreter_call",
        "compaction",
        "compaction_trigger",
        "computer_call",
        "computer_call_output",
        "configuration_update",
        "custom_tool_call",
        "custom_tool_call_output",
        "file_search_call",
        "image_generation_call",
        "local_shell_call",
        "local_shell_call_output",
        "mcp_approval_request",
        "mcp_approval_response",
        "mcp_call",
        "mcp_list_tools",
        "program",
        "program_output",
        "shell_call",
        "shell_call_output",
        "tool_search_call",
        "tool_search_output",
        "web_search_call",
    ]
    id: str | None = None
    call_id: str | None = None
    output: Any = None


class NeMoGymResponseMcpCall(NeMoGymHostedItem):
    """A call of a tool of an MCP server that the provider speaks to, with what came of it."""

    name: str
    arguments: str
    type: Literal["mcp_call"] = "mcp_call"
    server_label: str | None = None
    error: str | None = None


NeMoGymResponseFunctionCallOutput = NeMoGymFunctionCallOutput
