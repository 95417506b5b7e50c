"""The steps of one agent turn, in order, and what they leave to be closed.

Rules:
* A close is registered before its seed is sent: a seed that may or may not have arrived is closed as well.
* The verifier sees the cookies that the agent's tool calls ended with.
* A result carries no key of the collector; a verifier that failed is a failure of the episode, with the response kept.

Source: servers.md §3.10.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal
from uuid import uuid4

from pydantic import BaseModel, ConfigDict

from environment_servers.single_agent_turn.exchange import Peer
from rollbook import (
    NG_FAILURE_CLASS_KEY,
    AgentCloseSessionRequest,
    AgentCloseSessionResponse,
    AgentSeedSessionRequest,
    AgentSeedSessionResponse,
    CleanupContext,
    DirectHTTPToolAccess,
    FailureStage,
    MCPConnection,
    MCPToolAccess,
    NeMoGymResponse,
    ResourcesCloseSessionRequest,
    ResourcesCloseSessionResponse,
    ResourcesSeedSessionRequest,
    ResourcesSeedSessionResponse,
    SingleAgentTurnRequest,
    SingleAgentTurnResult,
    ToolAccess,
    get_server_url,
)

COLLECTOR_PREFIX: Final = "_ng_"
COLLECTOR_KEYS: Final = frozenset({"ng_model_call_capture", "ng_perf", "ng_agent_observations"})
Transport = Literal["direct_http", "mcp"]


class Verified(BaseModel):
    """A verifier's reply, whatever it says."""

    model_config = ConfigDict(extra="allow")

    failure_kind: str | None = None
    failure_reason: str | None = None


@dataclass(slots=True)
class Turn:
    """One turn: its request, its two servers with their jars, and the ids of its sessions."""

    request: SingleAgentTurnRequest
    resources: Peer
    agent: Peer
    resources_session_id: str
    agent_session_id: str
    closed: AgentCloseSessionResponse | None = None

    @classmethod
    def between(cls, request: SingleAgentTurnRequest, resources: Peer, agent: Peer) -> "Turn":
        """Return a turn whose sessions have ids of their own."""
        return cls(request, resources, agent, f"resources-session-{uuid4().hex}", f"agent-session-{uuid4().hex}")

    async def seed_resources(self, cleanup: CleanupContext) -> ResourcesSeedSessionResponse:
        """Open the environment's session."""
        cleanup.register_cleanup("the resources session", self.close_resources)
        seeded = await self.resources.post(
            "/seed_session",
            ResourcesSeedSessionRequest(
                resources_session_id=self.resources_session_id,
                episode_id=self.request.episode_id,
                task_id=self.request.task.task_id,
                task_data=self.request.task.task_input.task_data,
            ).model_dump(mode="json"),
            ResourcesSeedSessionResponse,
        )
        if seeded.resources_session_id != self.resources_session_id:
            raise self.resources.failed("POST /seed_session answered for another session", terminal=True)
        if not self.resources.cookies:
            raise self.resources.failed("POST /seed_session set no session cookie", terminal=True)
        return seeded

    async def seed_agent(
        self, seeded: ResourcesSeedSessionResponse, transports: Sequence[Transport], cleanup: CleanupContext
    ) -> None:
        """Open the agent's session, with the environment's tools."""
        accesses = self._tool_accesses(seeded, transports)
        cleanup.register_cleanup("the agent session", self.close_agent)
        await self.agent.post(
            "/v1/agent_sessions",
            AgentSeedSessionRequest(
                agent_session_id=self.agent_session_id,
                episode_id=self.request.episode_id,
                task_id=self.request.task.task_id,
                tool_accesses=accesses,
                sandbox_access=seeded.sandbox_access,
            ).model_dump(mode="json"),
            AgentSeedSessionResponse,
        )

    async def answer(self, url_path: str) -> NeMoGymResponse:
        """Let the agent answer, and close its session."""
        self.agent.stage = FailureStage.AGENT
        asked = self.request.task.task_input.responses_create_params
        response = await self.agent.post(url_path, asked.model_dump(exclude_unset=True), NeMoGymResponse)
        self.agent.partial_response = self.resources.partial_response = response
        closed = await self.close_agent()
        if closed.resources_cookies is not None:
            self.resources.cookies = closed.resources_cookies
        return response

    async def verify(self, response: NeMoGymResponse) -> SingleAgentTurnResult:
        """Return the verified response."""
        self.resources.stage = FailureStage.VERIFICATION
        task_input = self.request.task.task_input
        asked = {
            **task_input.task_data,
            "responses_create_params": task_input.responses_create_params.model_dump(exclude_unset=True),
            "response": response.model_dump(exclude_unset=True),
        }
        verified = await self.resources.post("/verify", asked, Verified)
        fields = {name: value for name, value in verified if name in verified.model_fields_set}
        if NG_FAILURE_CLASS_KEY in fields:
            reason = verified.failure_reason or f"POST /verify failed: {fields[NG_FAILURE_CLASS_KEY]}"
            raise self.resources.failed(reason, terminal=False, kind=verified.failure_kind)
        return self._result(fields)

    async def close_agent(self) -> AgentCloseSessionResponse:
        """Close the agent's session, once."""
        if self.closed is None:
            body = AgentCloseSessionRequest(agent_session_id=self.agent_session_id, episode_id=self.request.episode_id)
            self.closed = await self.agent.post(
                "/v1/agent_sessions/close", body.model_dump(mode="json"), AgentCloseSessionResponse
            )
        return self.closed

    async def close_resources(self) -> None:
        """Close the environment's session."""
        body = ResourcesCloseSessionRequest(
            resources_session_id=self.resources_session_id, episode_id=self.request.episode_id
        )
        await self.resources.post("/close_session", body.model_dump(mode="json"), ResourcesCloseSessionResponse)

    def _result(self, fields: dict[str, Any]) -> SingleAgentTurnResult:
        own = {
            key: value
            for key, value in fields.items()
            if not key.startswith(COLLECTOR_PREFIX) and key not in COLLECTOR_KEYS
        }
        observations = self.closed.agent_observations if self.closed else None
        try:
            return SingleAgentTurnResult.model_validate({**own, "ng_agent_observations": observations})
        except ValueError as error:
            raise self.resources.failed(f"POST /verify answered no verified row: {error}", terminal=True) from error

    def _tool_accesses(self, seeded: ResourcesSeedSessionResponse, transports: Sequence[Transport]) -> list[ToolAccess]:
        """Return the ways to the environment's tools; the only way is a required one."""
        base_url = get_server_url(self.resources.client.global_config_dict, self.resources.name)
        accesses: list[ToolAccess] = []
        only = len(transports) == 1
        if "direct_http" in transports:
            accesses.append(
                DirectHTTPToolAccess(
                    name="resources_http", required=only, base_url=base_url, cookies=self.resources.cookies
                )
            )
        tools = seeded.resources_tools
        if "mcp" in transports and tools is not None:
            connection = MCPConnection(url=base_url + tools.url_path, headers=tools.headers)
            accesses.append(MCPToolAccess(name="resources_mcp", required=only, connection=connection))
        if not accesses:
            raise self.resources.failed(
                "offers no tools over MCP, the only transport that is configured", terminal=True
            )
        return accesses
