"""The base of environments that are stepped: one reset, then a step for each response of the model.

Rules:
* An environment is two methods, `reset` and `step`; what it keeps between them stands in `session_state`.
* A reset drops what the session kept before; a step that ends the episode drops what it kept, whatever its reward.
* There is no verification: rewards are paid by steps.

Source: servers.md §6.2.
"""

import json
from abc import abstractmethod
from typing import Any, ClassVar

from fastapi import FastAPI, Request
from pydantic import BaseModel, ConfigDict, Field

from rollbook import (
    SESSION_ID_KEY,
    BaseResourcesServerConfig,
    BaseRunRequest,
    BaseVerifyRequest,
    NeMoGymResponse,
    NeMoGymResponseFunctionToolCall,
    ReverifyMode,
    SimpleResourcesServer,
)

Observed = tuple[str | None, dict[str, Any]]
Stepped = tuple[str | None, float, bool, bool, dict[str, Any]]


class GymnasiumServerConfig(BaseResourcesServerConfig):
    """Nothing but what every resources server has. A saved response says nothing without its episode."""

    REVERIFY_MODE: ClassVar[ReverifyMode] = ReverifyMode.UNSUPPORTED


class EnvResetRequest(BaseRunRequest):
    """A row, whatever else it carries."""

    model_config = ConfigDict(extra="allow")


class EnvResetResponse(BaseModel):
    """What the model is shown first, null for nothing, and what the agent is told."""

    observation: str | None = None
    info: dict[str, Any] = Field(default_factory=dict)


class EnvStepRequest(BaseVerifyRequest):
    """A row with the response to act on."""

    model_config = ConfigDict(extra="allow")


class EnvStepResponse(EnvResetResponse):
    """What came of a response: the reward of this step, and whether the episode is over."""

    reward: float
    terminated: bool = False
    truncated: bool = False


class GymnasiumServer(SimpleResourcesServer):
    """An environment that is stepped. A subclass answers `reset` and `step`.

    `session_state` holds what an episode keeps, by session id.
    """

    config: BaseResourcesServerConfig
    session_state: dict[str, Any] = Field(default_factory=dict)

    def setup_webserver(self) -> FastAPI:
        """Return the application with the routes of an environment that is stepped; `/verify` is none of them."""
        app = FastAPI()
        self.setup_session_middleware(app)
        app.post("/reset")(self.reset_session)
        app.post("/step")(self.step_session)
        app.post("/aggregate_metrics")(self.aggregate_metrics)
        app.get("/reverify_mode")(self.get_reverify_mode)
        return app

    @abstractmethod
    async def reset(self, metadata: dict[str, Any], session_id: str) -> Observed:
        """Begin an episode; return its first observation and info.

        `metadata`: the row's fields beside `responses_create_params`.
        """

    @abstractmethod
    async def step(self, action: NeMoGymResponse, metadata: dict[str, Any], session_id: str) -> Stepped:
        """Act on a response; return the observation, the reward, terminated, truncated and info.

        `info["tool_outputs"]`, a list of `tool_output(...)`, answers the response's tool calls.
        """

    async def reset_session(self, request: Request, body: EnvResetRequest) -> EnvResetResponse:
        """Begin the session's episode, dropping what it kept of another."""
        session_id: str = request.session[SESSION_ID_KEY]
        self.session_state.pop(session_id, None)
        observation, info = await self.reset(dict(body.model_extra or {}), session_id)
        return EnvResetResponse(observation=observation, info=info)

    async def step_session(self, request: Request, body: EnvStepRequest) -> EnvStepResponse:
        """Carry out one step of the session's episode."""
        session_id: str = request.session[SESSION_ID_KEY]
        metadata = dict(body.model_extra or {})
        observation, reward, terminated, truncated, info = await self.step(body.response, metadata, session_id)
        if terminated or truncated:
            self.session_state.pop(session_id, None)
        return EnvStepResponse(
            observation=observation, reward=reward, terminated=terminated, truncated=truncated, info=info
        )


def extract_text(response: NeMoGymResponse) -> str:
    """Return the text of all messages of a response, joined without anything between."""
    return response.output_text


def tool_output(call: NeMoGymResponseFunctionToolCall, result: object) -> dict[str, str]:
    """Return an entry of `info["tool_outputs"]`; a result that is no text is written as JSON."""
    return {"call_id": call.call_id, "output": result if isinstance(result, str) else json.dumps(result)}
