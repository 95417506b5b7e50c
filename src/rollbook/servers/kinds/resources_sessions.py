"""What a resources server is asked and answers, and which of its typed sessions are open.

Rules:
* A session is known by its `resources_session_id`, whatever cookie the request carries.
* The same seed, or the same close, may come again and changes nothing; a different one under the same id is refused.
* A closed session stays closed: its id is remembered, so that a late seed cannot open it again.
* An open session has no end of its own: no limit and no age can tell an episode that is long from one that is gone.
  Whoever seeds closes, as environment servers do in their clean-up; what a client leaves open when it is killed takes
  well under a kilobyte here until the server ends.
* A response takes the whole dumped request, so that a verifier can echo what it was sent.

Source: servers.md §3.7.
"""

from collections import OrderedDict
from typing import Final, Generic, Literal, TypeVar

from fastapi import HTTPException
from pydantic import BaseModel, ConfigDict, Field, JsonValue, field_validator

from rollbook.records.episode_models import EpisodeId, TaskId
from rollbook.records.failure_kinds import known_kind
from rollbook.records.identity import ROLLOUT_ID_KEY_NAME
from rollbook.sandbox.access import SandboxAccess
from rollbook.servers.openai.openai_response import NeMoGymResponse, NeMoGymResponseCreateParamsNonStreaming

CONFLICT: Final = 409
_REMEMBERED: Final = 10_000
VerificationInput = TypeVar("VerificationInput")


class BaseRunRequest(BaseModel):
    """A row as it is run. `capture_rollout_id` is the row's `_ng_rollout_id`; it is read and never dumped."""

    model_config = ConfigDict(populate_by_name=True)

    responses_create_params: NeMoGymResponseCreateParamsNonStreaming
    capture_rollout_id: str | None = Field(default=None, alias=ROLLOUT_ID_KEY_NAME, exclude=True)


class BaseVerifyRequest(BaseRunRequest):
    """A row together with the response to verify."""

    response: NeMoGymResponse


class BaseVerifyResponse(BaseVerifyRequest):
    """A verified row. `mask_sample` says that the reward is no measurement."""

    reward: float
    mask_sample: bool = False
    failure_kind: str | None = None
    failure_reason: str | None = None

    @field_validator("failure_kind")
    @classmethod
    def _warn_of_unknown_kinds(cls, kind: str | None) -> str | None:
        if kind is not None:
            known_kind(kind)
        return kind


class BaseMultiRewardVerifyResponse(BaseVerifyResponse):
    """A verified row whose reward has parts; `reward` is normally their sum."""

    reward_components: dict[str, float]


class BaseSeedSessionRequest(BaseModel):
    """The row that opens a cookie session; a subclass names the fields that it reads."""


class BaseSeedSessionResponse(BaseModel):
    """What opening a cookie session answers."""


class MCPServerMetadata(BaseModel):
    """Where a session's tools are served over MCP; `url_path` is below the server's address."""

    server_name: str
    url_path: str = "/mcp"
    transport: Literal["http"] = "http"
    headers: dict[str, str] = Field(default_factory=dict)


class ResourcesSeedSessionRequest(BaseModel):
    """Opens a typed session for one episode."""

    model_config = ConfigDict(extra="forbid")

    resources_session_id: str = Field(min_length=1)
    episode_id: EpisodeId
    task_id: TaskId
    task_data: dict[str, JsonValue]


class ResourcesSeedSessionResponse(BaseModel):
    """An open typed session and what it offers."""

    resources_session_id: str
    resources_tools: MCPServerMetadata | None = None
    sandbox_access: SandboxAccess | None = None


class ResourcesCloseSessionRequest(BaseModel):
    """Closes a typed session."""

    model_config = ConfigDict(extra="forbid")

    resources_session_id: str = Field(min_length=1)
    episode_id: EpisodeId


class ResourcesCloseSessionResponse(BaseModel):
    """A closed typed session."""

    resources_session_id: str


class ResourcesVerifyRequest(BaseModel, Generic[VerificationInput]):
    """An episode's verification, with the fields that this verifier reads."""

    episode_id: EpisodeId
    task_id: TaskId
    verification_input: VerificationInput


class ResourcesSessions:
    """The typed sessions of one process: which are open, and the last `remembered` that were closed."""

    def __init__(self, remembered: int = _REMEMBERED) -> None:
        self._remembered = remembered
        self._open: dict[str, tuple[EpisodeId, TaskId]] = {}
        self._closed: OrderedDict[str, EpisodeId] = OrderedDict()

    def seed(self, request: ResourcesSeedSessionRequest) -> bool:
        """Open the session; False when it is open already.

        Raises:
            HTTPException: 409; the id is closed, or belongs to another episode or task.

        """
        name = request.resources_session_id
        if name in self._closed:
            raise HTTPException(CONFLICT, f"resources session {name!r} is closed; seed one with an id of its own")
        known = self._open.setdefault(name, asked := (request.episode_id, request.task_id))
        if known != asked:
            raise HTTPException(CONFLICT, f"resources session {name!r} belongs to another episode or task")
        return known is asked

    def close(self, request: ResourcesCloseSessionRequest) -> bool:
        """Close the session; False when it was not open. An id that was never seeded is closed from now on.

        Raises:
            HTTPException: 409; the id belongs to another episode.

        """
        name = request.resources_session_id
        opened = self._open.get(name)
        owner = opened[0] if opened else self._closed.get(name, request.episode_id)
        if owner != request.episode_id:
            raise HTTPException(CONFLICT, f"resources session {name!r} belongs to another episode")
        self._closed[name] = owner
        while len(self._closed) > self._remembered:
            self._closed.popitem(last=False)
        return self._open.pop(name, None) is not None
