"""`expose_tools_over_mcp: true`: the same tools, the same sessions, one more door.

Rules:
* Plain HTTP works as before; MCP is beside it, and a call of either lands in the session that `/verify` reads.
* Whoever seeds is told where the tools are and is given the session's token.
* Harnesses call a tool `mcp__<server>__<tool>`; a verifier reads `<tool>`, and the row keeps what the model wrote.

Source: servers.md §8.6.
"""

import inspect
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Protocol

import msgspec
from fastapi import FastAPI, Request
from fastapi.encoders import jsonable_encoder
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute
from pydantic import BaseModel, TypeAdapter
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from rollbook.config.types import BaseRunServerInstanceConfig
from rollbook.errors import ConfigError
from rollbook.servers.kinds.resources_sessions import (
    MCPServerMetadata,
    ResourcesSeedSessionResponse,
)
from rollbook.servers.mcp.endpoint import MCP_PATH, MCPEndpoint
from rollbook.servers.mcp.session_token import NEMO_GYM_MCP_METADATA_KEY, TOKEN_HEADER, sealed
from rollbook.servers.mcp.tool_names import restored_names, with_tool_names
from rollbook.servers.mcp.tools import MCPCatchall, MCPTool, tools_of
from rollbook.servers.session_key import SESSION_ID_KEY

_REQUEST: Final = "mcp_request_of_the_session"


class ExposedServer(Protocol):
    """What a server needs to have its tools served."""

    config: Any

    @property
    def session_middleware_key(self) -> str:
        """The name of the server's session cookies."""
        ...

    def mcp_tools(self, harvested: list[MCPTool], catchall: MCPCatchall | None) -> Sequence[MCPTool]:
        """Return the tools that are offered."""
        ...

    def mcp_allowed_tools_for_session(self, seed_body: Any) -> Sequence[str] | None:
        """Return the tools that a session may call; None: all."""
        ...

    def normalize_tool_name(self, name: str) -> str:
        """Return the name by which a verifier knows a tool."""
        ...


def maybe_auto_expose(server: ExposedServer, app: FastAPI) -> None:
    """Serve the tools of `app` at `/mcp` where the server's configuration says so; done once.

    Raises:
        ConfigError: a tool that MCP could not offer as its route does.

    """
    config: BaseRunServerInstanceConfig = server.config
    if not getattr(config, "expose_tools_over_mcp", False) or _route_of(app, MCP_PATH) is not None:
        return
    tools = tools_of(app, config.name, server.mcp_tools)
    _replace(app, "/seed_session", _Seeding(server, tools).around)
    _replace(app, "/verify", _Verifying(server, frozenset(tools)).around)
    endpoint = MCPEndpoint(app, config.name, server.session_middleware_key, tools)
    app.add_api_route(MCP_PATH, endpoint.post, methods=["POST"], include_in_schema=False, response_model=None)
    app.add_api_route(
        MCP_PATH, endpoint.refuse, methods=["GET", "DELETE"], include_in_schema=False, response_model=None
    )
    _before_catchalls(app)


class _Call(msgspec.Struct, frozen=True):
    """A call of a route's handler: the arguments that it takes, and the request."""

    route: APIRoute
    arguments: dict[str, Any]
    request: Request

    async def answer(self) -> Any:
        """Return what the handler returns."""
        handler = self.route.endpoint
        if inspect.iscoroutinefunction(handler):
            return await handler(**self.arguments)
        return await run_in_threadpool(handler, **self.arguments)

    @property
    def body(self) -> Any:
        """The request's body as the handler takes it."""
        names = [field.name for field in self.route.dependant.body_params]
        return self.arguments.get(names[0]) if names else None

    def encoded(self, answer: Any) -> Any:
        """Return an answer as the route sends it, as JSON values."""
        if self.route.response_model is None:
            return jsonable_encoder(answer)
        adapter: TypeAdapter[Any] = TypeAdapter(self.route.response_model)
        value = answer.model_dump() if isinstance(answer, BaseModel) and not _fits(adapter, answer) else answer
        return adapter.dump_python(adapter.validate_python(value), mode="json", by_alias=True)


Around = Callable[[_Call], Any]


class _Seeding(msgspec.Struct, frozen=True):
    """Tells whoever seeds a session where its tools are."""

    server: ExposedServer
    tools: Mapping[str, MCPTool]

    async def around(self, call: _Call) -> Any:
        answer = await call.answer()
        if isinstance(answer, Response):
            return answer
        metadata = self._metadata(call)
        if isinstance(answer, ResourcesSeedSessionResponse):
            return answer.model_copy(update={"resources_tools": answer.resources_tools or metadata})
        return JSONResponse({**call.encoded(answer), NEMO_GYM_MCP_METADATA_KEY: metadata.model_dump(mode="json")})

    def _metadata(self, call: _Call) -> MCPServerMetadata:
        body = call.body
        allowed = self.server.mcp_allowed_tools_for_session(body)
        unknown = sorted(set(allowed or ()) - self.tools.keys())
        if unknown:
            raise ConfigError(
                f"{self.server.config.name}: mcp_allowed_tools_for_session names no tools of it: {', '.join(unknown)}"
            )
        session = call.request.session[SESSION_ID_KEY]
        token = sealed(self.server.session_middleware_key, session, allowed)
        return MCPServerMetadata(server_name=self.server.config.name, headers={TOKEN_HEADER: token})


class _Verifying(msgspec.Struct, frozen=True):
    """Lets a verifier read the names of its own tools."""

    server: ExposedServer
    tools: frozenset[str]

    async def around(self, call: _Call) -> Any:
        body = call.body
        shown, calls = with_tool_names(body, self.tools, self.server.normalize_tool_name)
        if not calls:
            return await call.answer()
        names = {name: shown if value is body else value for name, value in call.arguments.items()}
        answer = await _Call(call.route, names, call.request).answer()
        return restored_names(answer, calls)


def _replace(app: FastAPI, path: str, around: Around) -> None:
    """Put `around` between a route and its handler, whose parameters and reply stay those of the wire."""
    route = _route_of(app, path)
    if route is None:
        return
    handler = route.endpoint
    signature = _resolved_signature(handler)
    own_request = route.dependant.request_param_name

    async def around_handler(**arguments: Any) -> Any:
        request = arguments[own_request] if own_request else arguments.pop(_REQUEST)
        return await around(_Call(route, arguments, request))

    parameters = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in signature.parameters.values()]
    if own_request is None:
        parameters.append(inspect.Parameter(_REQUEST, inspect.Parameter.KEYWORD_ONLY, annotation=Request))
    around_handler.__signature__ = inspect.Signature(  # type: ignore[attr-defined]  # how FastAPI learns the parameters
        parameters, return_annotation=signature.return_annotation
    )
    around_handler.__doc__, around_handler.__name__ = handler.__doc__, route.name
    place = app.router.routes.index(route)
    app.add_api_route(path, around_handler, methods=["POST"], response_model=route.response_model, name=route.name)
    app.router.routes[place] = app.router.routes.pop()


def _resolved_signature(handler: Callable[..., Any]) -> inspect.Signature:
    """Return a handler's signature with its annotations as objects, whatever module they were written in."""
    signature = inspect.signature(handler)
    hints = typing.get_type_hints(inspect.unwrap(handler), include_extras=True)
    known = [one.replace(annotation=hints.get(one.name, one.annotation)) for one in signature.parameters.values()]
    return signature.replace(parameters=known, return_annotation=hints.get("return", signature.return_annotation))


def _before_catchalls(app: FastAPI) -> None:
    """Let the routes at `/mcp` be found before a route whose path is a parameter."""
    routes = app.router.routes
    own = [route for route in routes if getattr(route, "path", None) == MCP_PATH]
    routes[:] = own + [route for route in routes if route not in own]


def _route_of(app: FastAPI, path: str) -> APIRoute | None:
    found = (route for route in app.routes if isinstance(route, APIRoute) and route.path == path)
    return next((route for route in found if "POST" in (route.methods or ())), None)


def _fits(adapter: TypeAdapter[Any], answer: BaseModel) -> bool:
    kind = adapter.core_schema.get("cls")
    return isinstance(kind, type) and isinstance(answer, kind)
