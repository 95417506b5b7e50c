"""Which routes of a resources server are tools, and what MCP is told of them.

Rules:
* Every POST route with a fixed path is a tool, but those by which a rollout is run; its name is the path.
* One route whose path is a parameter may stand behind tools that the server names itself.
* What a call could not do as the route does it (dependencies, several bodies, another's middleware) is refused when
  the server starts, not when a model calls.

Source: servers.md §8.6.
"""

import inspect
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import msgspec
from fastapi import FastAPI
from fastapi.params import File, Form
from fastapi.routing import APIRoute
from pydantic import PydanticInvalidForJsonSchema, PydanticSchemaGenerationError, TypeAdapter
from starlette.middleware.sessions import SessionMiddleware

from rollbook.errors import ConfigError
from rollbook.servers.correlation import RolloutContextMiddleware
from rollbook.servers.sessions import SessionIdMiddleware, SignedSessions

RESERVED_NAMES: Final = frozenset({"verify", "seed_session", "close_session", "aggregate_metrics", "mcp"})
_NAME: Final = re.compile(r"[A-Za-z0-9_-]+")
_POST: Final = "POST"
_ANYTHING: Final[Mapping[str, Any]] = {"type": "object", "additionalProperties": True}
_KNOWN_MIDDLEWARE: Final[frozenset[object]] = frozenset(
    {SignedSessions, SessionIdMiddleware, SessionMiddleware, RolloutContextMiddleware}
)
_OTHER_PLACES: Final = (
    "query_params",
    "header_params",
    "cookie_params",
    "dependencies",
    "background_tasks_param_name",
    "security_scopes_param_name",
    "websocket_param_name",
)


class MCPTool(msgspec.Struct, frozen=True):
    """A tool as MCP lists it, and the route that answers its calls; `path_value` fills the path of a catch-all."""

    name: str
    input_schema: Mapping[str, Any]
    description: str
    route: APIRoute
    path_value: str | None = None

    def listed(self) -> dict[str, Any]:
        """Return the entry of `tools/list`."""
        return {"name": self.name, "description": self.description, "inputSchema": dict(self.input_schema)}


class MCPCatchall(msgspec.Struct, frozen=True):
    """The one route whose path is a parameter."""

    route: APIRoute

    def tool(self, name: str, schema: Mapping[str, Any] | None = None, description: str = "") -> MCPTool:
        """Return a tool of this name whose calls the route answers; `schema` is its arguments' JSON schema."""
        return MCPTool(name, dict(schema or _ANYTHING), description, self.route, path_value=name)


ToolChoice = Callable[[list[MCPTool], MCPCatchall | None], Sequence[MCPTool]]


def tools_of(app: FastAPI, server_name: str, choose: ToolChoice) -> dict[str, MCPTool]:
    """Return the tools of an application by name, after its server's own `choose`.

    Raises:
        ConfigError: a tool that MCP could not offer as the route offers it; names the server.

    """
    _refuse_other_middleware(app, server_name)
    routes = [route for route in app.routes if isinstance(route, APIRoute) and _POST in (route.methods or ())]
    own = [route for route in routes if route.path.strip("/") not in RESERVED_NAMES]
    catchalls = [route for route in own if route.dependant.path_params]
    if len(catchalls) > 1:
        paths = ", ".join(route.path for route in catchalls)
        raise ConfigError(f"{server_name}: several routes have a path that is a parameter ({paths}); keep one")
    harvested = [_tool(route, server_name) for route in own if route not in catchalls]
    for route in catchalls:
        _refuse_undispatchable(route, server_name)
    chosen = choose(harvested, MCPCatchall(catchalls[0]) if catchalls else None)
    _refuse_names([tool.name for tool in chosen], server_name)
    return {tool.name: tool for tool in chosen}


def _tool(route: APIRoute, server_name: str) -> MCPTool:
    _refuse_undispatchable(route, server_name)
    described = inspect.cleandoc(route.endpoint.__doc__ or route.description or "")
    return MCPTool(route.path.strip("/"), _schema(route), described, route)


def _schema(route: APIRoute) -> Mapping[str, Any]:
    """Return the JSON schema of a route's body; anything goes where it is no object."""
    if not route.dependant.body_params:
        return {"type": "object", "properties": {}}
    try:
        annotation: Any = route.dependant.body_params[0].field_info.annotation
        schema = TypeAdapter(annotation).json_schema()
    except (PydanticInvalidForJsonSchema, PydanticSchemaGenerationError):
        return _ANYTHING
    return schema if schema.get("type") == "object" else _ANYTHING


def _refuse_undispatchable(route: APIRoute, server_name: str) -> None:
    dependant = route.dependant
    bodies = [field.field_info for field in dependant.body_params]
    unusual = [place for place in _OTHER_PLACES if getattr(dependant, place, None)]
    if len(bodies) > 1 or len(dependant.path_params) > 1 or any(isinstance(body, (Form, File)) for body in bodies):
        unusual.append("more than one JSON body or path parameter")
    if unusual or route.dependencies:
        what = ", ".join(unusual) or "dependencies"
        raise ConfigError(
            f"{server_name}: {route.path} cannot be called over MCP, it asks for {what}; "
            "let it take one JSON body, or set expose_tools_over_mcp to false"
        )


def _refuse_other_middleware(app: FastAPI, server_name: str) -> None:
    others = [added.cls for added in app.user_middleware if added.cls not in _KNOWN_MIDDLEWARE]
    if others:
        names = ", ".join(getattr(cls, "__name__", str(cls)) for cls in others)
        raise ConfigError(
            f"{server_name}: MCP calls would pass by the middleware {names}; "
            "remove it, or set expose_tools_over_mcp to false"
        )


def _refuse_names(names: Sequence[str], server_name: str) -> None:
    wrong = [name for name in names if not _NAME.fullmatch(name) or name in RESERVED_NAMES]
    wrong += [name for name, count in Counter(names).items() if count > 1]
    if wrong:
        raise ConfigError(
            f"{server_name}: no names of MCP tools: {', '.join(map(repr, wrong))}; "
            "a name is of letters, digits, - and _, is no route of the server's own, and stands once"
        )
