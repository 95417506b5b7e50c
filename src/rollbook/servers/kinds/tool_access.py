"""How an agent reaches the tools of an episode: plain HTTP or MCP.

Rules:
* Which kind it is stands in `kind`; a name is used once in a list.
* An address is a whole one of HTTP, and always has a path: `http://host:1` is `http://host:1/`.
* `required` says that an agent which cannot use this kind must refuse the session; an optional one may be ignored.

Source: servers.md §8.5.
"""

from typing import Annotated, Final, Literal

from pydantic import AfterValidator, AnyHttpUrl, BaseModel, ConfigDict, Field, TypeAdapter

ACCESS_NAME_PATTERN: Final = r"^[A-Za-z0-9][A-Za-z0-9._-]*$"


_HTTP_URL: Final[TypeAdapter[AnyHttpUrl]] = TypeAdapter(AnyHttpUrl)


def _whole_address(text: str) -> str:
    return str(_HTTP_URL.validate_python(text))


HttpAddress = Annotated[str, AfterValidator(_whole_address)]


class _Access(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: str = Field(pattern=ACCESS_NAME_PATTERN)
    required: bool


class DirectHTTPToolAccess(_Access):
    """Tool `t` is POST `<base_url>/t`, one slash between them, with these cookies and headers."""

    kind: Literal["direct_http"] = "direct_http"
    base_url: HttpAddress
    cookies: dict[str, str] = Field(default_factory=dict)
    headers: dict[str, str] = Field(default_factory=dict)


class MCPConnection(BaseModel):
    """Where an MCP server answers."""

    model_config = ConfigDict(extra="forbid")

    transport: Literal["streamable_http"] = "streamable_http"
    url: HttpAddress
    headers: dict[str, str] = Field(default_factory=dict)


MCPStreamableHTTPConnection = MCPConnection


class MCPToolAccess(_Access):
    """The tools that an MCP server lists."""

    kind: Literal["mcp"] = "mcp"
    connection: MCPConnection


ToolAccess = Annotated[DirectHTTPToolAccess | MCPToolAccess, Field(discriminator="kind")]


def with_unique_names(accesses: list[ToolAccess]) -> list[ToolAccess]:
    """Return `accesses` unchanged.

    Raises:
        ValueError: two of them have one name.

    """
    names = [access.name for access in accesses]
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise ValueError(
            f"tool accesses need names of their own; {', '.join(map(repr, repeated))} stands more than once"
        )
    return accesses


ToolAccesses = Annotated[list[ToolAccess], AfterValidator(with_unique_names)]
