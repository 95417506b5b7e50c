"""Tools and the choice among them, as plain JSON objects that were looked at.

Rules:
* A tool stays a `dict`: agents and chat templates read it as JSON, and its parameter schema is nobody's type.
* A function tool keeps its own fields; what providers add when they echo a tool is dropped, so it can be sent again.

Source: servers.md §5.1, servers.md §5.2 point 6.
"""

from typing import Annotated, Any, Literal, NotRequired

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Discriminator, Tag
from typing_extensions import TypedDict


class NeMoGymFunctionToolParam(TypedDict):
    """A function tool: a name and a JSON schema of its arguments."""

    __pydantic_config__ = ConfigDict(extra="ignore")  # type: ignore[misc] # pydantic reads the attribute, which TypedDict does not know

    type: Literal["function"]
    name: str
    description: NotRequired[str | None]
    parameters: NotRequired[dict[str, Any] | None]
    strict: NotRequired[bool | None]
    defer_loading: NotRequired[bool | None]


class NeMoGymHostedToolParam(TypedDict):
    """Any other tool, passed through."""

    __pydantic_config__ = ConfigDict(extra="allow")  # type: ignore[misc] # as above

    type: str


def _tool_tag(tool: Any) -> str | None:
    kind = tool.get("type") if isinstance(tool, dict) else None
    return "function" if kind == "function" else "hosted" if isinstance(kind, str) else None


NeMoGymToolParam = Annotated[
    Annotated[NeMoGymFunctionToolParam, Tag("function")] | Annotated[NeMoGymHostedToolParam, Tag("hosted")],
    Discriminator(
        _tool_tag,
        custom_error_type="tool_type",
        custom_error_message="a tool is an object with a `type`, such as `function`",
    ),
]

TOOL_CHOICES = frozenset({"none", "auto", "required"})


def _known_choice(choice: str | dict[str, Any]) -> str | dict[str, Any]:
    if isinstance(choice, str):
        if choice in TOOL_CHOICES:
            return choice
        msg = "tool_choice is one of none, auto, required, or an object that names a tool"
        raise ValueError(msg)
    if isinstance(choice.get("type"), str):
        return choice
    msg = "a tool_choice object needs a `type`, such as `function`"
    raise ValueError(msg)


NeMoGymToolChoice = Annotated[str | dict[str, Any], AfterValidator(_known_choice)]


def _as_json(value: Any) -> Any:
    return value.model_dump(exclude_unset=True) if hasattr(value, "model_dump") else value


JsonField = Annotated[dict[str, Any], BeforeValidator(_as_json)]
