"""The base of environments that are stepped: reset, then an action and an observation at a time.

Rules:
* An episode belongs to its cookie session; its state is dropped when the environment ends it.
* There is no `/verify`: the reward is the sum of what the steps gave.
* `metadata` is everything in the row but the request itself.

Source: servers.md §6.2.
"""

import json
from abc import abstractmethod
from typing import Any

from fastapi import FastAPI, Request
from pydantic import BaseModel, ConfigDict, Field

from rollbook import (
    SESSION_ID_KEY,
    BaseResourcesServerConfig,
    BaseRunRequest,
    NeMoGymResponse,
    NeMoGymResponseFunctionToolCall,
    SimpleResourcesServer,
)

__all__ = [
    "BaseResourcesServerConfig",
    "EnvResetRequest",
    "EnvResetResponse",
    "EnvStepRequest",
    "EnvStepResponse",
    "GymnasiumServer",
    "extract_text",
    "tool_output",
]

Observed = tuple[str | None, dict[str, Any]]
Stepped = tuple[str | None, float, bool, bool, dict[str, Any]]


class EnvResetRequest(BaseRunRequest):
    """The row that an episode starts from."""

    model_config = ConfigDict(extra="allow")


class EnvResetResponse(BaseModel):
    """What the agent sees first; a null observation is shown to nobody."""

    observation: str | None = None
    info: dict[str, Any] = Field(default_factory=dict)


class EnvStepRequest(EnvResetRequest):
    """The row, and the response that is the agent's action."""

    response: NeMoGymResponse


class EnvStepResponse(EnvResetResponse):
    """What the action led to. `terminated`: the episode is over; `truncated`: it was cut short."""

    reward: float
    terminated: bool = False
    truncated: bool = False


class GymnasiumServer(SimpleResourcesServer):
    """An environment that is stepped. A subclass answers `reset` and `step`, and keeps its state by session id."""

    config: BaseResourcesServerConfig
    session_state: dict[str, Any] = Field(default_factory=dict)

    def setup_webserver(self) -> FastAPI:
        """Return the application with the routes `/reset`, `/step` and `/aggregate_metrics`."""
        app = FastAPI()
        self.setup_session_middleware(app)
        app.post("/reset")(self._reset)
        app.post("/step")(self._step)
        app.post("/aggregate_metrics")(self.aggregate_metrics)
        app.get("/reverify_mode")(self.reverify_mode)
        return app

    @abstractmethod
    async def reset(self, metadata: dict[str, Any], session_id: str) -> Observed:
        """Start an episode; return (observation, info)."""

    @abstractmethod
    async def step(self, action: NeMoGymResponse, metadata: dict[str, Any], session_id: str) -> Stepped:
        """Take an action; return (observation, reward, terminated, truncated, info)."""

    async def _reset(self, request: Request, body: EnvResetRequest) -> EnvResetResponse:
        observation, info = await self.reset(_metadata(body), request.session[SESSION_ID_KEY])
        return EnvResetResponse(observation=observation, info=info)

    async def _step(self, request: Request, body: EnvStepRequest) -> EnvStepResponse:
        session_id = request.session[SESSION_ID_KEY]
        observation, reward, terminated, truncated, info = await self.step(body.response, _metadata(body), session_id)
        if terminated or truncated:
            self.session_state.pop(session_id, None)
        return EnvStepResponse(
            observation=observation, reward=reward, terminated=terminated, truncated=truncated, info=info
        )


def extract_text(response: NeMoGymResponse) -> str:
    """Return all text that the model wrote."""
    return response.output_text


def tool_output(call: NeMoGymResponseFunctionToolCall, result: object) -> dict[str, str]:
    """Return an entry of `info["tool_outputs"]`: what `call` led to, as text."""
    return {"call_id": call.call_id, "output": result if isinstance(result, str) else json.dumps(result)}


def _metadata(body: BaseRunRequest) -> dict[str, Any]:
    return dict(body.model_extra or {})
