"""A counter for each session: the reward is 1 when it ends at the row's number.

Rules:
* A cookie session is known by its session id; a typed session by its own id, which its cookie carries for the tools.
* A counter that was never seeded starts at 0. A typed seed that comes again leaves the counter as it is.
* Verifying ends the count. A session without a counter cannot be verified: its reward is masked.

Source: servers.md §3.4, §3.7, §7.3 (17).
"""

from typing import ClassVar, Final

from fastapi import FastAPI, HTTPException, Request
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from rollbook import (
    SESSION_ID_KEY,
    BaseResourcesServerConfig,
    BaseRunRequest,
    BaseSeedSessionRequest,
    BaseSeedSessionResponse,
    BaseVerifyRequest,
    BaseVerifyResponse,
    ResourcesCloseSessionRequest,
    ResourcesCloseSessionResponse,
    ResourcesSeedSessionRequest,
    ResourcesSeedSessionResponse,
    ReverifyMode,
    SimpleResourcesServer,
)

UNPROCESSABLE: Final = 422
TYPED_ID_KEY: Final = "resources_session_id"
SESSION_LOST: Final = "session_lost"
LOST: Final = (
    "this session has no counter: it was not seeded here, or it was verified before; "
    "POST /seed_session first, and send its cookie with every request"
)


class StatefulCounterConfig(BaseResourcesServerConfig):
    """Nothing but what every resources server has."""

    REVERIFY_MODE: ClassVar[ReverifyMode] = ReverifyMode.UNSUPPORTED


class StatefulCounterSeedSessionRequest(BaseSeedSessionRequest):
    """A row, as far as opening its session reads it."""

    initial_count: int = 0


class IncrementCounterRequest(BaseModel):
    """How much to add; a negative number takes away."""

    count: int


class IncrementCounterResponse(BaseModel):
    """That it was added."""

    success: bool


class GetCounterValueResponse(BaseModel):
    """Where the counter stands."""

    count: int


class StatefulCounterRunRequest(BaseRunRequest):
    """A row: where its counter starts, and where it should end."""

    model_config = ConfigDict(extra="allow")

    initial_count: int = 0
    expected_count: int


class StatefulCounterVerifyRequest(StatefulCounterRunRequest, BaseVerifyRequest):
    """A row with its response."""


class StatefulCounterVerifyResponse(BaseVerifyResponse):
    """The row with its reward."""

    model_config = ConfigDict(extra="allow")


class StatefulCounterResourcesServer(SimpleResourcesServer):
    """Counts for each session."""

    config: StatefulCounterConfig
    session_id_to_counter: dict[str, int] = Field(default_factory=dict)

    def setup_webserver(self) -> FastAPI:
        """Return the application with the routes of both tools."""
        app = super().setup_webserver()
        app.post("/increment_counter")(self.increment_counter)
        app.post("/get_counter_value")(self.get_counter_value)
        return app

    async def seed_session(
        self, request: Request, body: ResourcesSeedSessionRequest | StatefulCounterSeedSessionRequest
    ) -> ResourcesSeedSessionResponse | BaseSeedSessionResponse:
        """Set the session's counter to the row's `initial_count`.

        Raises:
            HTTPException: 409; the typed id is closed, or belongs to another episode or task.
                422; the typed request's `task_data.initial_count` is no integer.

        """
        if not isinstance(body, ResourcesSeedSessionRequest):
            request.session.pop(TYPED_ID_KEY, None)
            self.session_id_to_counter[session_name(request)] = body.initial_count
            return BaseSeedSessionResponse()
        start = initial_count(body)
        if self._resources_sessions.seed(body):
            self.session_id_to_counter[body.resources_session_id] = start
        request.session[TYPED_ID_KEY] = body.resources_session_id
        return ResourcesSeedSessionResponse(resources_session_id=body.resources_session_id)

    async def close_resources_session(self, body: ResourcesCloseSessionRequest) -> ResourcesCloseSessionResponse:
        """Close a typed session and drop its counter.

        Raises:
            HTTPException: 409; the id belongs to another episode.

        """
        closed: ResourcesCloseSessionResponse = await super().close_resources_session(body)
        self.session_id_to_counter.pop(body.resources_session_id, None)
        return closed

    async def increment_counter(self, request: Request, body: IncrementCounterRequest) -> IncrementCounterResponse:
        """Add to the session's counter."""
        name = session_name(request)
        self.session_id_to_counter[name] = self.session_id_to_counter.get(name, 0) + body.count
        return IncrementCounterResponse(success=True)

    async def get_counter_value(self, request: Request) -> GetCounterValueResponse:
        """Return where the session's counter stands."""
        return GetCounterValueResponse(count=self.session_id_to_counter.get(session_name(request), 0))

    async def verify(self, request: Request, body: StatefulCounterVerifyRequest) -> StatefulCounterVerifyResponse:
        """Return the row with reward 1 when the counter stands at `expected_count`, else 0; end the count."""
        count = self.session_id_to_counter.pop(session_name(request), None)
        row = dict(body)
        if count is None:
            mask = {"mask_sample": True, "failure_kind": SESSION_LOST, "failure_reason": LOST}
            return StatefulCounterVerifyResponse(**(row | {"reward": 0.0} | mask))
        return StatefulCounterVerifyResponse(**(row | {"reward": float(count == body.expected_count)}))


def session_name(request: Request) -> str:
    """Return the id that a request's counter is kept under."""
    name: str = request.session.get(TYPED_ID_KEY) or request.session[SESSION_ID_KEY]
    return name


def initial_count(body: ResourcesSeedSessionRequest) -> int:
    """Return the `initial_count` of a typed request.

    Raises:
        HTTPException: 422; it is no integer.

    """
    try:
        return StatefulCounterSeedSessionRequest.model_validate(body.task_data).initial_count
    except ValidationError as error:
        found = body.task_data.get("initial_count")
        raise HTTPException(
            UNPROCESSABLE, f"task_data.initial_count: {found!r} is no integer; give where the counter starts"
        ) from error


if __name__ == "__main__":
    StatefulCounterResourcesServer.run_webserver()
