"""Content parts: what a message's content, or a tool's output, is a list of.

Rules:
* A part keeps fields that are not named here, so that what a provider sends comes back out unchanged.
* A part reads like a mapping too (`part["text"]`, `part.get("text")`): rows carry parts as plain JSON objects.
* `type` is always written, also when a part was built without naming it.

Source: servers.md §5.1.
"""

from collections.abc import Iterator, KeysView
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Discriminator, Field, SerializeAsAny, Tag


class WireModel(BaseModel):
    """A JSON object of the Responses or the Chat dialect; unknown fields are kept."""

    model_config = ConfigDict(extra="allow", protected_namespaces=(), arbitrary_types_allowed=True)


class TypedWireModel(WireModel):
    """A wire model whose discriminating fields count as set, so that `exclude_unset` keeps them."""

    always_sent: ClassVar[tuple[str, ...]] = ("type",)

    def model_post_init(self, _context: Any, /) -> None:
        """Mark the discriminating fields as set."""
        self.__pydantic_fields_set__.update(self.always_sent)


class ReadsLikeMapping(WireModel):
    """Item access beside attribute access, over the fields that are set."""

    def __getitem__(self, key: str) -> Any:
        if key in self:
            return getattr(self, key)
        raise KeyError(key)

    def __contains__(self, key: object) -> bool:
        return key in self.__pydantic_fields_set__

    def get(self, key: str, default: Any = None) -> Any:
        """The value of a set field, or `default`."""
        return getattr(self, key) if key in self else default

    def keys(self) -> KeysView[str]:
        """The names of the set fields, which makes `dict(part)` work."""
        return dict.fromkeys(self.__pydantic_fields_set__).keys()

    def items(self) -> Iterator[tuple[str, Any]]:
        """Names and values of the set fields."""
        return ((key, getattr(self, key)) for key in self.keys())


class ContentPart(TypedWireModel, ReadsLikeMapping):
    """What every content part is."""


class NeMoGymResponseInputText(ContentPart):
    """Text that goes in."""

    text: str
    type: Literal["input_text"] = "input_text"


class NeMoGymResponseInputImage(ContentPart):
    """An image that goes in: a URL (or data URI), or the id of a file."""

    detail: str | None = "auto"
    file_id: str | None = None
    image_url: str | None = None
    type: Literal["input_image"] = "input_image"


class NeMoGymResponseInputFile(ContentPart):
    """A file that goes in."""

    file_data: str | None = None
    file_id: str | None = None
    file_url: str | None = None
    filename: str | None = None
    type: Literal["input_file"] = "input_file"


class NeMoGymResponseInputAudio(ContentPart):
    """Audio that goes in: `{data, format}`."""

    input_audio: dict[str, Any]
    type: Literal["input_audio"] = "input_audio"


class NeMoGymResponseInputVideo(ContentPart):
    """A video that goes in, by URL."""

    video_url: str
    type: Literal["input_video"] = "input_video"


class NeMoGymResponseOutputText(ContentPart):
    """Text that the model wrote."""

    always_sent: ClassVar[tuple[str, ...]] = ("type", "annotations")

    annotations: list[Any] = Field(default_factory=list)
    text: str
    type: Literal["output_text"] = "output_text"
    logprobs: list[Any] | None = None


class NeMoGymResponseOutputRefusal(ContentPart):
    """The model's words when it declined."""

    refusal: str
    type: Literal["refusal"] = "refusal"


class NeMoGymSummary(ContentPart):
    """One piece of a reasoning item's summary."""

    text: str
    type: Literal["summary_text"] = "summary_text"


class NeMoGymReasoningText(ContentPart):
    """One piece of a reasoning item's full content."""

    text: str
    type: Literal["reasoning_text"] = "reasoning_text"


class OtherPart(ContentPart):
    """A part of a hosted or later kind, passed through as it is."""

    type: str


KNOWN_PART_TYPES = frozenset(
    {"input_text", "input_image", "input_file", "input_audio", "input_video", "output_text", "refusal"}
)


def part_tag(part: Any) -> str:
    """The class tag of a part, given as an object or as JSON."""
    kind = part.get("type") if isinstance(part, dict) else getattr(part, "type", None)
    return kind if kind in KNOWN_PART_TYPES else "other"


NeMoGymInputContentPart = Annotated[
    Annotated[NeMoGymResponseInputText, Tag("input_text")]
    | Annotated[NeMoGymResponseInputImage, Tag("input_image")]
    | Annotated[NeMoGymResponseInputFile, Tag("input_file")]
    | Annotated[NeMoGymResponseInputAudio, Tag("input_audio")]
    | Annotated[NeMoGymResponseInputVideo, Tag("input_video")]
    | Annotated[NeMoGymResponseOutputText, Tag("output_text")]
    | Annotated[NeMoGymResponseOutputRefusal, Tag("refusal")]
    | Annotated[OtherPart, Tag("other")],
    Discriminator(part_tag),
    SerializeAsAny(),
]
NeMoGymResponseInputMessageContentList = list[NeMoGymInputContentPart]


def text_or_list(value: Any) -> str:
    """The tag of a value that is a string or a list, so that an error speaks of the one that was meant."""
    return "text" if type(value) is str or isinstance(value, str) else "list"


NeMoGymMessageContent = Annotated[
    Annotated[str, Tag("text")] | Annotated[NeMoGymResponseInputMessageContentList, Tag("list")],
    Discriminator(text_or_list),
    SerializeAsAny(),
]
NeMoGymOutputContentPart = Annotated[
    NeMoGymResponseOutputText | NeMoGymResponseOutputRefusal, Field(discriminator="type"), SerializeAsAny()
]
