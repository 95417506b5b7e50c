"""The base of agent servers: a harness that turns a request into a response, alone or inside a session.

Rules:
* `run` and `responses` are the wire: the annotations of the overriding method are its schema.
* `/run` works inside the rollout that its row names, so that calls made on the way are attributed.
* A session lives in one process: an agent with several workers cannot be seeded.
* Paths are put behind a rollout's prefix only where the deployment observes model calls.

Source: servers.md §3.8.
"""

import functools
import inspect
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, Final, ParamSpec

from fastapi import Body, FastAPI, Request
from pydantic import BaseModel, Field, PrivateAttr
from starlette.concurrency import run_in_threadpool

from rollbook.config.capture_flags import CaptureFlags, capture_flags
from rollbook.config.names import RESOURCES_SERVERS
from rollbook.config.types import BaseRunServerInstanceConfig
from rollbook.scoring.aggregate import AggregateMetricsMixin
from rollbook.servers.base import SimpleServer
from rollbook.servers.client import OBSERVABILITY_ENABLED_KEY_NAME, resolve_model_base_url
from rollbook.servers.correlation import (
    apply_rollout_prefix,
    current_rollout_id,
    rollout_context,
    rollout_id_from_run,
)
from rollbook.servers.http.addresses import base_url_of, server_block, server_type_of
from rollbook.servers.kinds.agent_sessions import (
    AGENT_SESSION_ID_KEY,
    AgentCloseSessionRequest,
    AgentCloseSessionResponse,
    AgentSeedSessionRequest,
    AgentSeedSessionResponse,
    AgentSessions,
    AgentSessionSetupError,
    AgentSessionState,
)
from rollbook.servers.kinds.resources_server import overridable
from rollbook.servers.kinds.resources_sessions import BaseRunRequest, BaseVerifyResponse
from rollbook.servers.kinds.tool_access import ToolAccess, ToolAccesses, with_unique_names
from rollbook.servers.openai.openai_response import NeMoGymResponse, NeMoGymResponseCreateParamsNonStreaming

__all__ = [
    "AgentCloseSessionRequest",
    "AgentCloseSessionResponse",
    "AgentSeedSessionRequest",
    "AgentSeedSessionResponse",
    "AgentSessionSetupError",
    "AgentSessionState",
    "BaseResponsesAPIAgentConfig",
    "Body",
    "SimpleResponsesAPIAgent",
]

_PORT_OF_HTTP: Final = ":80"
Arguments = ParamSpec("Arguments")


class BaseResponsesAPIAgentConfig(BaseRunServerInstanceConfig):
    """The configuration that every agent has.

    `skip_verification` replaces a verifier's reward by `skip_verification_reward`; `token_id_capture` asks model
    servers for the tokens of this agent's calls; `tool_accesses` are offered in every session.
    """

    session_close_retry_window_seconds: float = Field(default=300, gt=0)
    skip_verification: bool = False
    skip_verification_reward: float = 0.0
    token_id_capture: bool = False
    tool_accesses: ToolAccesses = Field(default_factory=list)


class SimpleResponsesAPIAgent(AggregateMetricsMixin, SimpleServer):
    """An agent. A subclass answers `responses` and `run`, and overrides the two session hooks to work in sessions."""

    config: BaseResponsesAPIAgentConfig

    _agent_sessions: AgentSessions = PrivateAttr()

    def model_post_init(self, context: object, /) -> None:
        """Begin without sessions."""
        super().model_post_init(context)
        self._agent_sessions = AgentSessions(self.config.session_close_retry_window_seconds)

    def setup_webserver(self) -> FastAPI:
        """Return the application with the routes that every agent has."""
        app = FastAPI()
        self.setup_session_middleware(app)
        self.setup_rollout_context_middleware(app)
        app.post("/v1/responses")(self.responses)
        app.post("/run")(self._inside_rollout(self._run_for_the_wire()))
        app.post("/aggregate_metrics")(self.aggregate_metrics)
        app.post("/v1/agent_sessions")(self.seed_agent_session)
        app.post("/v1/agent_sessions/close")(self.close_agent_session)
        return app

    @overridable
    async def responses(self, body: NeMoGymResponseCreateParamsNonStreaming) -> NeMoGymResponse:
        """Return the response to a request, model and tools included."""
        raise NotImplementedError

    @overridable
    async def run(self, body: BaseRunRequest) -> BaseVerifyResponse:
        """Return a row's verified response."""
        raise NotImplementedError

    def _run_for_the_wire(self) -> Callable[..., Any]:
        """Return what answers `/run`: `run`, or what has its signature and may answer with a reply that is written."""
        return self.run

    async def _seed_agent_session_state(self, body: AgentSeedSessionRequest) -> AgentSessionState:
        """Return what is to be kept for a session; raise `AgentSessionSetupError` when a part of it stands already."""
        raise NotImplementedError(f"{type(self).__name__} does not work in agent sessions")

    async def _close_agent_session_state(self, state: AgentSessionState) -> AgentCloseSessionResponse:
        """Release what a session holds, and return what it saw."""
        raise NotImplementedError(f"{type(self).__name__} does not work in agent sessions")

    async def seed_agent_session(self, request: Request, body: AgentSeedSessionRequest) -> AgentSeedSessionResponse:
        """Open an agent session and bind the cookie to it.

        Raises:
            HTTPException: 409; see `agent_sessions`.
            ValueError: the agent has several worker processes.

        """
        if (self.config.num_workers or 1) > 1:
            raise ValueError(f"agent sessions require num_workers=1; {self.config.name} has {self.config.num_workers}")
        cookie = self._agent_session_id_from_request(request)
        await self._agent_sessions.seed(cookie, body, self._seed_agent_session_state)
        request.session[AGENT_SESSION_ID_KEY] = body.agent_session_id
        return AgentSeedSessionResponse(agent_session_id=body.agent_session_id)

    async def close_agent_session(self, request: Request, body: AgentCloseSessionRequest) -> AgentCloseSessionResponse:
        """Close an agent session.

        Raises:
            HTTPException: 409; see `agent_sessions`.

        """
        cookie = self._agent_session_id_from_request(request)
        closed = await self._agent_sessions.close(cookie, body, self._close_agent_session_state)
        request.session[AGENT_SESSION_ID_KEY] = body.agent_session_id
        return closed

    def agent_session(self, request: Request) -> AbstractAsyncContextManager[AgentSessionState | None]:
        """Hold the session of a request's cookie while its block runs; gives None outside of a session.

        Raises:
            HTTPException: 409; the session is closed, closing, half set up, or forgotten.

        """
        return self._agent_sessions.active(self._agent_session_id_from_request(request))

    def _agent_session_id_from_request(self, request: Request) -> str | None:
        """Return the session that a request's cookie is bound to; None outside of one."""
        bound = request.session.get(AGENT_SESSION_ID_KEY)
        return bound if isinstance(bound, str) else None

    def _require_agent_session(self, agent_session_id: str) -> AgentSessionState:
        """Return the state of an open session; `agent_session` holds it as well.

        Raises:
            HTTPException: 409; the session is closed, closing, half set up, or forgotten.

        """
        return self._agent_sessions.open_state(agent_session_id)

    def effective_tool_accesses(self, request: AgentSeedSessionRequest) -> list[ToolAccess]:
        """Return the accesses of the configuration, then those of the request.

        Raises:
            ValueError: two of them have one name.

        """
        return with_unique_names([*self.config.tool_accesses, *request.tool_accesses])

    def rollout_id_from_run(self, body: BaseModel | Mapping[str, object]) -> str | None:
        """Return the capture key of the attempt that a `/run` body names, or None when it names none.

        Raises:
            InputError: the body's explicit id may not name a rollout.

        """
        return rollout_id_from_run(body)

    def url_path_for_run(self, url_path: str, body: BaseModel | Mapping[str, object]) -> str:
        """Return `url_path` behind the prefix of the rollout that `body` names, where model calls are observed."""
        if not self._capture_correlation_enabled():
            return url_path
        return self._prefixed(url_path, rollout_id_from_run(body) or current_rollout_id())

    def url_path_for_request(self, url_path: str, request: Request) -> str:
        """Return `url_path` behind the prefix that `request` came with, where model calls are observed."""
        if not self._capture_correlation_enabled():
            return url_path
        named = request.path_params.get("rollout_id")
        return self._prefixed(url_path, named if isinstance(named, str) else current_rollout_id())

    def base_url_for_run(self, base_url: str, body: BaseModel | Mapping[str, object]) -> str:
        """Return `base_url` with the rollout's prefix; a trailing `/v1` stays at the end."""
        root = base_url.rstrip("/")
        tail = "/v1" if root.endswith("/v1") else ""
        return root.removesuffix("/v1") + self.url_path_for_run(tail, body)

    def base_url_for_tools(self, base_url: str) -> str:
        """Return a direct access's `base_url`, with the running rollout's prefix where its calls are observed.

        Only a resources server of this deployment knows the prefix; the address of any other stays as it is.
        """
        config = getattr(self.server_client, "global_config_dict", None)
        rollout_id = current_rollout_id()
        if rollout_id is None or config is None or config.get(OBSERVABILITY_ENABLED_KEY_NAME) is not True:
            return base_url
        names = (str(key) for key in config if server_type_of(config, str(key)) == RESOURCES_SERVERS)
        known = {base_url_of(server_block(config, name)).removesuffix(_PORT_OF_HTTP) for name in names}
        root = base_url.rstrip("/")
        return root + apply_rollout_prefix("", rollout_id) if root.removesuffix(_PORT_OF_HTTP) in known else base_url

    def resolve_model_base_url(self, model_server_name: str, rollout_id: str | None = None) -> str:
        """Return `http://host:port[/ng-rollout/<id>[/training-token-capture]]/v1` for a program of its own."""
        return resolve_model_base_url(
            self.server_client, model_server_name, rollout_id, training_capture=self._token_id_capture_enabled()
        )

    def _model_call_capture_enabled(self) -> bool:
        """Whether this deployment observes model calls."""
        known = getattr(self.server_client, "observes_model_calls", None)
        if isinstance(known, bool):
            return known
        config = getattr(self.server_client, "global_config_dict", None)
        return config is not None and config.get(OBSERVABILITY_ENABLED_KEY_NAME) is True

    def _token_id_capture_enabled(self) -> bool:
        """Whether the tokens of this agent's calls are wanted."""
        known = getattr(self.server_client, "capture_flags", None)
        if not isinstance(known, CaptureFlags):
            known = capture_flags(getattr(self.server_client, "global_config_dict", None))
        return known.takes_part(self.config.token_id_capture)

    def _capture_correlation_enabled(self) -> bool:
        """Whether this agent's model calls name their rollout."""
        return self._model_call_capture_enabled() or self._token_id_capture_enabled()

    def _prefixed(self, url_path: str, rollout_id: str | None) -> str:
        return apply_rollout_prefix(url_path, rollout_id, token_capture=self._token_id_capture_enabled())

    def _inside_rollout(self, run: Callable[Arguments, Any]) -> Callable[Arguments, Awaitable[Any]]:
        """Return `run` inside the rollout of its body; a plain function runs in a thread."""
        waits = inspect.iscoroutinefunction(run)

        @functools.wraps(run)
        async def inside(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Any:
            bodies = [value for value in (*args, *kwargs.values()) if isinstance(value, BaseModel)]
            rollout_id = rollout_id_from_run(bodies[0]) if bodies else None
            with rollout_context(rollout_id, training_capture=self._token_id_capture_enabled()):
                if waits:
                    return await run(*args, **kwargs)
                return await run_in_threadpool(run, *args, **kwargs)

        return inside
