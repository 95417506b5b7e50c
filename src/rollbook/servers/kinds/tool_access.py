"""How an agent reaches the tools of an episode: plain HTTP or MCP.

Rules:
* Which kind it is stands in `kind`; a name is used once in a list.
* `required` says that an agent which cannot use this kind must refuse the session; an optional one may be ignored.

Source: servers.md §8.5.
"""

from typing import Annotated, Final, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

ACCESS_NAME_PATTERN: Final = r"^[A-Za-z0-9][A-Za-z0-9._-]*$"


class _Access(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: str = Field(pattern=ACCESS_NAME_PATTERN)
    required: bool


class DirectHTTPToolAccess(_Access):
    """Tool `t` is POST `<base_url>/t`, with these cookies and headers."""

    kind: Literal["direct_http"] = "direct_http"
    base_url: str
    cookies: dict[str, str] = Field(default_factory=dict)
    headers: dict[str, str] = Field(default_factory=dict)


class MCPConnection(BaseModel):
    """Where an MCP server answers."""

    model_config = ConfigDict(extra="forbid")

    transport: Literal["streamable_http"] = "streamable_http"
    url: str
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
