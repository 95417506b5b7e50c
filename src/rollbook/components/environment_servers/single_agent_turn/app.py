"""An environment server of one agent and one resources server: one turn an episode.

Rules:
* Seed both, let the agent answer, close it, verify, close the environment; `turn` holds the steps.
* Aggregation is the resources server's: it knows its metrics.

Source: servers.md §3.10.
"""

from typing import ClassVar

from pydantic import Field

from environment_servers.single_agent_turn.exchange import Peer
from environment_servers.single_agent_turn.turn import Transport, Turn
from rollbook import (
    AgentServerRef,
    AggregateMetrics,
    AggregateMetricsRequest,
    BaseEnvironmentServer,
    BaseEnvironmentServerConfig,
    CleanupContext,
    EpisodeFailure,
    FailureStage,
    ResourcesServerRef,
    SingleAgentTurnFailure,
    SingleAgentTurnRequest,
    SingleAgentTurnResponse,
    get_response_json,
    raise_for_status,
    rollout_path_prefix,
)


class SingleAgentTurnConfig(BaseEnvironmentServerConfig):
    """The two servers of an episode, and how the agent may reach the environment's tools."""

    resources_server: ResourcesServerRef
    agent_server: AgentServerRef
    resources_tool_transports: list[Transport] = Field(default=["direct_http"], min_length=1)


class SingleAgentTurnServer(BaseEnvironmentServer[SingleAgentTurnRequest, SingleAgentTurnResponse]):
    """Runs single agent turns."""

    request_model: ClassVar[type[SingleAgentTurnRequest]] = SingleAgentTurnRequest
    response_model: ClassVar[type[SingleAgentTurnResponse]] = SingleAgentTurnResponse

    config: SingleAgentTurnConfig

    async def run(self, request: SingleAgentTurnRequest, cleanup: CleanupContext) -> SingleAgentTurnResponse:
        """Run one turn."""
        resources = Peer(self.server_client, self.config.resources_server.name, FailureStage.SEED, {})
        agent = Peer(self.server_client, self.config.agent_server.name, FailureStage.SEED, {})
        turn = Turn.between(request, resources, agent)
        seeded = await turn.seed_resources(cleanup)
        await turn.seed_agent(seeded, self.config.resources_tool_transports, cleanup)
        response = await turn.answer(self._answer_path(request))
        result = await turn.verify(response)
        return SingleAgentTurnResponse(episode_id=request.episode_id, task_id=request.task.task_id, result=result)

    def failure_response(self, request: SingleAgentTurnRequest, failure: EpisodeFailure) -> SingleAgentTurnResponse:
        """Return the reply for a failed turn."""
        if not isinstance(failure, SingleAgentTurnFailure):
            failure = SingleAgentTurnFailure.model_validate(failure.model_dump())
        return super().failure_response(request, failure)

    async def aggregate_metrics(self, body: AggregateMetricsRequest) -> AggregateMetrics:
        """Ask the resources server for the metrics of its results."""
        reply = await self.server_client.post(
            server_name=self.config.resources_server.name, url_path="/aggregate_metrics", json=body
        )
        await raise_for_status(reply)
        return AggregateMetrics.model_validate(await get_response_json(reply))

    def _answer_path(self, request: SingleAgentTurnRequest) -> str:
        captures = self.captures_tokens(self.config.agent_server.name)
        return rollout_path_prefix(request.episode_id.capture_key, token_capture=captures) + "/v1/responses"


if __name__ == "__main__":
    SingleAgentTurnServer.run_webserver()
