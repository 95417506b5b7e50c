"""The base of environment servers: one episode from admission to clean-up, whatever happens in it.

Rules:
* Every request is answered 200 with a result or a failure; only a request that is none is 422.
* A queue that is too long, a time that is up and an error that was foreseen are failures with a reason of their own;
  any other error of an environment is a terminal failure, for it would happen again.
* Clean-up runs once the ending is known, and never changes it.

Source: servers.md §3.10.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, ClassVar, Final, Generic, Self, TypeVar, cast

from fastapi import FastAPI
from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, model_validator

from rollbook.config.types import BaseRunServerInstanceConfig
from rollbook.records.episode_models import EpisodeFailure
from rollbook.records.failure_kinds import FailureStage
from rollbook.scoring.aggregate import AggregateMetricsMixin
from rollbook.servers.base import SimpleServer
from rollbook.servers.correlation import rollout_context
from rollbook.servers.deadline import shorter, take_over
from rollbook.servers.http.addresses import server_block
from rollbook.servers.kinds.environment_server_cleanup import CleanupContext, CleanupHandle
from rollbook.servers.kinds.episodes import BaseEpisodeRequest, BaseEpisodeResponse

__all__ = [
    "BaseEnvironmentServer",
    "BaseEnvironmentServerConfig",
    "CleanupContext",
    "CleanupHandle",
    "HandledEpisodeError",
]

_LOG = logging.getLogger(__name__)
_REASON_CHARS: Final = 2000
Request = TypeVar("Request", bound=BaseEpisodeRequest[Any])
Response = TypeVar("Response", bound=BaseEpisodeResponse[Any])


class HandledEpisodeError(Exception):
    """An error that an environment foresaw: the episode ends with `failure`."""

    def __init__(self, failure: EpisodeFailure) -> None:
        super().__init__(failure.failure_reason)
        self.failure = failure


class BaseEnvironmentServerConfig(BaseRunServerInstanceConfig):
    """The configuration that every environment server has; times in seconds, null for no limit."""

    model_config = ConfigDict(extra="forbid")

    max_concurrent_episodes: int | None = Field(default=None, ge=1)
    queue_timeout_seconds: float | None = Field(default=None, ge=0)
    default_episode_timeout_seconds: float | None = Field(default=None, gt=0)
    cleanup_timeout_seconds: float = Field(gt=0)

    @model_validator(mode="after")
    def _queue_has_an_end(self) -> Self:
        if (self.max_concurrent_episodes is None) != (self.queue_timeout_seconds is None):
            raise ValueError("give max_concurrent_episodes and queue_timeout_seconds together, or neither")
        return self


class BaseEnvironmentServer(AggregateMetricsMixin, SimpleServer, Generic[Request, Response]):
    """An environment server. A subclass names `request_model` and `response_model`, and answers `run`."""

    request_model: ClassVar[type[BaseEpisodeRequest[Any]]]
    response_model: ClassVar[type[BaseEpisodeResponse[Any]]]

    config: BaseEnvironmentServerConfig

    _admission: asyncio.Semaphore | None = PrivateAttr(default=None)

    def model_post_init(self, context: object, /) -> None:
        """Make as many places as episodes may run at a time."""
        super().model_post_init(context)
        if self.config.max_concurrent_episodes is not None:
            self._admission = asyncio.Semaphore(self.config.max_concurrent_episodes)

    def setup_webserver(self) -> FastAPI:
        """Return the application with the two routes that every environment server has."""
        app = FastAPI()
        self.setup_session_middleware(app)
        app.post("/run")(self._run_route())
        app.post("/aggregate_metrics")(self.aggregate_metrics)
        return app

    async def run(self, request: Request, cleanup: CleanupContext) -> Response:
        """Run one episode.

        What has to be given back is registered on `cleanup`, and is given back after this returns or raises.

        Raises:
            HandledEpisodeError: the episode ends with the error's failure.

        """
        raise NotImplementedError

    def failure_response(self, request: Request, failure: EpisodeFailure) -> Response:
        """Return the reply for an episode that failed; override it for failures of a type of their own."""
        told = failure.model_dump() if type(failure) is EpisodeFailure else failure
        reply = self.response_model.model_validate(
            {"episode_id": request.episode_id, "task_id": request.task.task_id, "result": None, "failure": told}
        )
        return cast("Response", reply)

    async def run_request(self, request: Request) -> Response:
        """Run one episode from admission to clean-up, and answer with its result or its failure."""
        async with self._admitted() as admitted:
            if admitted:
                with rollout_context(request.episode_id.capture_key):
                    return await self._run_admitted(request)
        return self.failure_response(
            request,
            EpisodeFailure(failure_reason="Episode admission timed out", terminal=False, stage=FailureStage.ADMISSION),
        )

    def captures_tokens(self, agent_server_name: str) -> bool:
        """Whether an agent's configuration asks for the tokens of its model calls."""
        return bool(server_block(self.server_client.global_config_dict, agent_server_name).get("token_id_capture"))

    @asynccontextmanager
    async def _admitted(self) -> AsyncIterator[bool]:
        """Hold a place while the block runs; gives False when none came free in time."""
        places = self._admission
        if places is None:
            yield True
            return
        try:
            async with asyncio.timeout(self.config.queue_timeout_seconds):
                await places.acquire()
        except TimeoutError:
            yield False
            return
        try:
            yield True
        finally:
            places.release()

    async def _run_admitted(self, request: Request) -> Response:
        cleanup = CleanupContext(self.config.cleanup_timeout_seconds)
        try:
            return await self._ended(request, cleanup)
        finally:
            await cleanup.close()

    async def _ended(self, request: Request, cleanup: CleanupContext) -> Response:
        limit = asyncio.timeout(shorter(self.config.default_episode_timeout_seconds, take_over()))
        try:
            async with limit:
                response = await self.run(request, cleanup)
                _check_identity(request, response)
                return response
        except HandledEpisodeError as error:
            return self.failure_response(request, error.failure)
        except Exception as error:  # noqa: BLE001  an environment's own error ends its episode; see docs/architecture.md
            if isinstance(error, TimeoutError) and limit.expired():
                return self.failure_response(
                    request, EpisodeFailure(failure_reason="Episode timed out", terminal=False)
                )
            _LOG.exception("episode %s ended with an error", request.episode_id.capture_key)
            reason = f"Unhandled environment server error: {error!r}"[:_REASON_CHARS]
            return self.failure_response(request, EpisodeFailure(failure_reason=reason, terminal=True))

    def _run_route(self) -> Callable[[Any], Awaitable[BaseModel]]:
        """Return the handler of `/run`, annotated with the two models."""

        async def run_episode(body: Any) -> BaseModel:
            return await self.run_request(body)

        run_episode.__annotations__ = {"body": self.request_model, "return": self.response_model}
        return run_episode


def _check_identity(request: BaseEpisodeRequest[Any], response: BaseEpisodeResponse[Any]) -> None:
    if response.episode_id != request.episode_id or response.task_id != request.task.task_id:
        raise ValueError(
            f"the episode {request.episode_id.capture_key} of task {request.task.task_id.task_id!r} was answered for "
            f"{response.episode_id.capture_key} of task {response.task_id.task_id!r}"
        )
