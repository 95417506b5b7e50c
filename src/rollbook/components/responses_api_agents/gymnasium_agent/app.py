"""An agent for environments that are stepped: reset, then a model call and a step at a time.

Rules:
* The reward is the sum over the steps; an episode that used up its steps is truncated.
* An environment that says so is closed at the end, also after an error; a close that fails is logged.
* A step whose environment knows its request id may be sent again: it is carried out once.

Source: servers.md §6.2.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import uuid4

from aiohttp import ClientError
from fastapi import Request
from pydantic import BaseModel, ConfigDict, Field

from rollbook import (
    AggregateMetrics,
    AggregateMetricsRequest,
    BaseResponsesAPIAgentConfig,
    BaseRunRequest,
    BaseVerifyResponse,
    ModelServerRef,
    NeMoGymEasyInputMessage,
    NeMoGymFunctionCallOutput,
    NeMoGymResponse,
    NeMoGymResponseUsage,
    ResourcesServerRef,
    SimpleResponsesAPIAgent,
    accumulate_response_usage,
    get_response_json,
    merged_cookies,
    raise_for_status,
)

logger = logging.getLogger(__name__)
STEP_REQUEST_ID_KEY: Final = "_ng_step_request_id"
CLOSE_SECONDS: Final = 30.0


class GymnasiumAgentConfig(BaseResponsesAPIAgentConfig):
    """`max_steps` bounds the model calls of one episode."""

    resources_server: ResourcesServerRef
    model_server: ModelServerRef
    max_steps: int = Field(default=10, ge=1)


class GymnasiumAgentRunRequest(BaseRunRequest):
    """A row, whatever else it carries."""

    model_config = ConfigDict(extra="allow")


class GymnasiumAgentRunResponse(BaseVerifyResponse):
    """An episode: its summed reward, how it ended, and what the environment said last."""

    terminated: bool
    truncated: bool
    info: dict[str, Any] = Field(default_factory=dict)


class ResetReply(BaseModel):
    """What `/reset` answers."""

    observation: str | None = None
    info: dict[str, Any] = Field(default_factory=dict)


class StepReply(ResetReply):
    """What `/step` answers."""

    reward: float
    terminated: bool = False
    truncated: bool = False


@dataclass(slots=True)
class Episode:
    """One episode as it goes on: what is new, what it cost, and the environment's last word."""

    row: Mapping[str, Any]
    given: list[Any]
    cookies: dict[str, str]
    model_cookies: dict[str, str] | None = None
    new: list[Any] = field(default_factory=list)
    usage: NeMoGymResponseUsage | None = None
    reward: float = 0.0
    terminated: bool = False
    truncated: bool = False
    info: dict[str, Any] = field(default_factory=dict)
    is_closable: bool = False
    is_idempotent: bool = False

    @property
    def is_over(self) -> bool:
        """Whether the environment ended it."""
        return self.terminated or self.truncated

    def begin(self, reply: ResetReply) -> None:
        """Take in what the environment shows first."""
        self.is_closable = reply.info.get("supports_explicit_close") is True
        self.is_idempotent = reply.info.get("supports_step_idempotency") is True
        self.info = reply.info
        self.given += observed(reply.observation)

    def go_on(self, reply: StepReply) -> None:
        """Take in a step."""
        self.reward += reply.reward
        self.terminated, self.truncated, self.info = reply.terminated, reply.truncated, reply.info
        for entry in reply.info.get("tool_outputs") or ():
            self.new.append(NeMoGymFunctionCallOutput(call_id=entry["call_id"], output=entry["output"]))
        self.new += observed(reply.observation)


class GymnasiumAgent(SimpleResponsesAPIAgent):
    """An agent over one model server and one environment that is stepped."""

    config: GymnasiumAgentConfig

    async def run(self, request: Request, body: GymnasiumAgentRunRequest) -> GymnasiumAgentRunResponse:
        """Play one episode and return it with its reward."""
        asked = body.responses_create_params
        given = [NeMoGymEasyInputMessage(role="user", content=asked.input)] if isinstance(asked.input, str) else None
        episode = Episode(
            row=body.model_dump(exclude_unset=True),
            given=given or list(asked.input),
            cookies=merged_cookies(None, request.cookies),
        )
        episode.begin(ResetReply.model_validate(await self._environment(episode, "/reset", episode.row)))
        try:
            answer = await self._played(episode, body)
        finally:
            if episode.is_closable:
                await self._closed(episode)
        answer.output, answer.usage = episode.new, episode.usage
        return GymnasiumAgentRunResponse(
            responses_create_params=asked,
            response=answer,
            reward=episode.reward,
            terminated=episode.terminated,
            truncated=episode.truncated,
            info=episode.info,
        )

    async def aggregate_metrics(self, body: AggregateMetricsRequest) -> AggregateMetrics:
        """Ask the environment, which knows its metrics."""
        reply = await self.server_client.post(
            server_name=self.config.resources_server.name, url_path="/aggregate_metrics", json=body
        )
        await raise_for_status(reply)
        return AggregateMetrics.model_validate(await get_response_json(reply))

    async def _played(self, episode: Episode, body: BaseRunRequest) -> NeMoGymResponse:
        """Play until the environment ends the episode or its steps are up; return the model's last response."""
        for _ in range(self.config.max_steps):
            answer = await self._ask_model(episode, body)
            step = {**episode.row, "response": answer.model_dump(exclude_unset=True)}
            if episode.is_idempotent:
                step[STEP_REQUEST_ID_KEY] = uuid4().hex
            episode.go_on(StepReply.model_validate(await self._environment(episode, "/step", step)))
            if episode.is_over:
                return answer
        episode.truncated = True
        return answer

    async def _ask_model(self, episode: Episode, body: BaseRunRequest) -> NeMoGymResponse:
        asked = body.responses_create_params.model_copy(update={"input": [*episode.given, *episode.new]})
        name = self.config.model_server.name
        reply = await self.server_client.post(
            server_name=name, url_path="/v1/responses", json=asked, cookies=episode.model_cookies
        )
        await raise_for_status(reply)
        try:
            answer = NeMoGymResponse.model_validate(await get_response_json(reply))
        except ValueError as error:
            raise RuntimeError(f"the model server {name!r} answered no response: {error}") from error
        episode.model_cookies = merged_cookies(episode.model_cookies, reply)
        episode.new += answer.output
        episode.usage = accumulate_response_usage(episode.usage, answer.usage)
        return answer

    async def _environment(self, episode: Episode, url_path: str, row: Mapping[str, Any]) -> object:
        reply = await self.server_client.post(
            server_name=self.config.resources_server.name,
            url_path=url_path,
            json=row,
            cookies=episode.cookies,
            _replay=STEP_REQUEST_ID_KEY in row,
        )
        await raise_for_status(reply)
        episode.cookies = merged_cookies(episode.cookies, reply)
        return await get_response_json(reply)

    async def _closed(self, episode: Episode) -> None:
        try:
            reply = await self.server_client.post(
                server_name=self.config.resources_server.name,
                url_path="/close",
                json=episode.row,
                cookies=episode.cookies,
                timeout=CLOSE_SECONDS,
            )
            await raise_for_status(reply)
        except (ClientError, TimeoutError) as error:
            logger.warning("%s was not closed: %r", self.config.resources_server.name, error)


def observed(observation: str | None) -> list[Any]:
    """Return an observation as items: one user message, or none for an empty one."""
    return [NeMoGymEasyInputMessage(role="user", content=observation)] if observation else []


if __name__ == "__main__":
    GymnasiumAgent.run_webserver()
