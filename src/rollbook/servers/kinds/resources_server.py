"""The base of resources servers: tools and state of an environment, and the reward of a response.

Rules:
* The annotations of the overriding method are the wire schema: a bound method is the route, its signature untouched.
* A seed that has the typed form opens a typed session; any other is a row, and opens the cookie's session.
* A plain `def` handler runs in a thread; a judge that cannot be asked becomes a masked row.

Source: servers.md §3.7.
"""

from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Any, ClassVar

from fastapi import FastAPI
from pydantic import PrivateAttr

from rollbook.config.types import BaseRunServerInstanceConfig
from rollbook.scoring.aggregate import AggregateMetrics, AggregateMetricsMixin, AggregateMetricsRequest
from rollbook.servers.base import SimpleServer
from rollbook.servers.kinds.judge import judge_failsafe
from rollbook.servers.kinds.resources_sessions import (
    BaseMultiRewardVerifyResponse,
    BaseRunRequest,
    BaseSeedSessionRequest,
    BaseSeedSessionResponse,
    BaseVerifyRequest,
    BaseVerifyResponse,
    MCPServerMetadata,
    ResourcesCloseSessionRequest,
    ResourcesCloseSessionResponse,
    ResourcesSeedSessionRequest,
    ResourcesSeedSessionResponse,
    ResourcesSessions,
    ResourcesVerifyRequest,
)
from rollbook.servers.mcp.exposure import maybe_auto_expose
from rollbook.servers.mcp.tools import MCPCatchall, MCPTool
from rollbook.servers.openai.openai_response import NeMoGymResponse

__all__ = [
    "AggregateMetrics",
    "AggregateMetricsRequest",
    "BaseMultiRewardVerifyResponse",
    "BaseResourcesServerConfig",
    "BaseRunRequest",
    "BaseSeedSessionRequest",
    "BaseSeedSessionResponse",
    "BaseVerifyRequest",
    "BaseVerifyResponse",
    "MCPServerMetadata",
    "NeMoGymResponse",
    "ResourcesCloseSessionRequest",
    "ResourcesCloseSessionResponse",
    "ResourcesSeedSessionRequest",
    "ResourcesSeedSessionResponse",
    "ResourcesSessions",
    "ResourcesVerifyRequest",
    "ReverifyMode",
    "SimpleResourcesServer",
    "overridable",
]


class ReverifyMode(StrEnum):
    """Whether a saved response can be verified again without its episode."""

    STATELESS = "stateless"
    UNSUPPORTED = "unsupported"
    UNKNOWN = "unknown"


class BaseResourcesServerConfig(BaseRunServerInstanceConfig):
    """The configuration that every resources server has."""

    REVERIFY_MODE: ClassVar[ReverifyMode] = ReverifyMode.UNKNOWN

    expose_tools_over_mcp: bool = False


def overridable(handler: Callable[..., Any]) -> Callable[..., Any]:
    """Return `handler` itself: one that a subclass may override with other parameters and annotations."""
    return handler


class SimpleResourcesServer(AggregateMetricsMixin, SimpleServer):
    """A resources server. A subclass answers `verify`, and may override `seed_session` and add routes for its tools.

    `verify(body)` or `verify(request, body)`: a `BaseVerifyRequest` subclass to a `BaseVerifyResponse` subclass.
    """

    config: BaseResourcesServerConfig

    _resources_sessions: ResourcesSessions = PrivateAttr(default_factory=ResourcesSessions)

    def setup_webserver(self) -> FastAPI:
        """Return the application with the routes that every resources server has."""
        app = FastAPI()
        self.setup_session_middleware(app)
        self.setup_rollout_context_middleware(app)
        app.post("/seed_session")(self.seed_session)
        app.post("/close_session")(self.close_resources_session)
        app.post("/verify")(judge_failsafe(self.verify))
        app.post("/aggregate_metrics")(self.aggregate_metrics)
        app.get("/reverify_mode")(self.get_reverify_mode)
        return app

    def finish_webserver(self, app: FastAPI) -> None:
        """Serve the tools over MCP too, where `expose_tools_over_mcp` is true.

        Raises:
            ConfigError: a tool that MCP could not offer as its route does.

        """
        super().finish_webserver(app)
        maybe_auto_expose(self, app)

    def mcp_tools(self, harvested: list[MCPTool], catchall: MCPCatchall | None) -> Sequence[MCPTool]:
        """Return the tools that MCP offers: a hook, here those of the routes with a fixed path.

        A server with a route whose path is a parameter adds `catchall.tool(name, schema, description)` for each.
        """
        del catchall
        return harvested

    def mcp_allowed_tools_for_session(self, seed_body: Any) -> Sequence[str] | None:
        """Return the tools that the session of this `/seed_session` body may call over MCP: a hook, here all."""
        del seed_body
        return None

    def normalize_tool_name(self, name: str) -> str:
        """Return the name by which `verify` knows a tool that was called over MCP: a hook, here the name itself."""
        return name

    @overridable
    async def verify(self, body: BaseVerifyRequest) -> BaseVerifyResponse:
        """Return the row with its reward."""
        raise NotImplementedError

    @overridable
    async def seed_session(
        self, body: ResourcesSeedSessionRequest | BaseSeedSessionRequest
    ) -> ResourcesSeedSessionResponse | BaseSeedSessionResponse:
        """Open a session: a typed one for a typed request, nothing further for a row.

        Raises:
            HTTPException: 409; the id is closed, or belongs to another episode or task.

        """
        if not isinstance(body, ResourcesSeedSessionRequest):
            return BaseSeedSessionResponse()
        self._resources_sessions.seed(body)
        return ResourcesSeedSessionResponse(resources_session_id=body.resources_session_id)

    @overridable
    async def close_resources_session(self, body: ResourcesCloseSessionRequest) -> ResourcesCloseSessionResponse:
        """Close a typed session.

        Raises:
            HTTPException: 409; the id belongs to another episode.

        """
        self._resources_sessions.close(body)
        return ResourcesCloseSessionResponse(resources_session_id=body.resources_session_id)

    async def get_reverify_mode(self) -> ReverifyMode:
        """Return whether a saved response can be verified again without its episode."""
        return self.config.REVERIFY_MODE
