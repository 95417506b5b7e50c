"""What a Messages request is made of: messages, their content blocks, tools.

Rules:
* A block of a known type has what that type needs; further fields are kept.
* A block of another type is read too, so that it can be refused by its name.

Source: servers.md §3.9.
"""

from typing import Annotated, Any, Final, Literal

from pydantic import Discriminator, Tag, model_validator

from rollbook.servers.openai.openai_parts import WireModel


class MessageBlock(WireModel):
    """A content block of any type."""

    type: str


class TextBlock(MessageBlock):
    """Text."""

    type: Literal["text"]
    text: str


class ImageSource(WireModel):
    """An image: by its URL, or in base64."""

    url: str | None = None
    media_type: str | None = None
    data: str | None = None

    @model_validator(mode="after")
    def _is_somewhere(self) -> "ImageSource":
        if not self.url and (self.media_type is None or self.data is None):
            msg = "an image has a `url`, or `media_type` and `data`"
            raise ValueError(msg)
        return self

    @property
    def image_url(self) -> str:
        """The image as one URL."""
        return self.url or f"data:{self.media_type};base64,{self.data}"


class ImageBlock(MessageBlock):
    """An image."""

    type: Literal["image"]
    source: ImageSource


class ThinkingBlock(MessageBlock):
    """A model's reasoning."""

    type: Literal["thinking"]
    thinking: str
    signature: str | None = None


class RedactedThinkingBlock(MessageBlock):
    """A model's reasoning, encrypted."""

    type: Literal["redacted_thinking"]
    data: str


class ToolUseBlock(MessageBlock):
    """A call of a tool."""

    type: Literal["tool_use"]
    id: str
    name: str
    input: Any


class ToolResultBlock(MessageBlock):
    """What a tool answered."""

    type: Literal["tool_result"]
    tool_use_id: str
    content: "str | list[Block] | None" = None


_KNOWN: Final = frozenset({"text", "image", "thinking", "redacted_thinking", "tool_use", "tool_result"})


def _block_kind(block: Any) -> str:
    kind = block.get("type") if isinstance(block, dict) else getattr(block, "type", None)
    return kind if isinstance(kind, str) and kind in _KNOWN else "other"


Block = Annotated[
    Annotated[TextBlock, Tag("text")]
    | Annotated[ImageBlock, Tag("image")]
    | Annotated[ThinkingBlock, Tag("thinking")]
    | Annotated[RedactedThinkingBlock, Tag("redacted_thinking")]
    | Annotated[ToolUseBlock, Tag("tool_use")]
    | Annotated[ToolResultBlock, Tag("tool_result")]
    | Annotated[MessageBlock, Tag("other")],
    Discriminator(_block_kind),
]
ToolResultBlock.model_rebuild()


class Message(WireModel):
    """A turn of the conversation."""

    role: str
    content: str | list[Block]


class MessageTool(WireModel):
    """A tool; one of a type of its own runs at its provider."""

    name: str
    type: str | None = None
    description: str | None = None
    input_schema: dict[str, Any] | None = None

    @property
    def runs_at_provider(self) -> bool:
        """Whether the tool is none of the caller's."""
        return self.type not in {None, "custom"}

    @model_validator(mode="after")
    def _has_a_schema(self) -> "MessageTool":
        if self.input_schema is None and not self.runs_at_provider:
            msg = "a tool has an `input_schema`"
            raise ValueError(msg)
        return self


class ToolChoice(WireModel):
    """Which tool is to be called, if any."""

    type: Literal["auto", "any", "none", "tool"]
    name: str | None = None
    disable_parallel_tool_use: bool | None = None

    @model_validator(mode="after")
    def _names_its_tool(self) -> "ToolChoice":
        if self.type == "tool" and self.name is None:
            msg = "a tool_choice of type `tool` has a `name`"
            raise ValueError(msg)
        return self
