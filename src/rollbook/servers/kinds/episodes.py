"""What an environment server is asked and answers: an episode of a task, and its result or failure.

Rules:
* A reply has exactly one of `result` and `failure`, and names the episode and the task that it was asked for.
* A task's input may come flat: every key beside `responses_create_params` and `task_data` belongs to the task's data.

Source: servers.md §3.10; collection.md §2.11, §4.4.
"""

from collections.abc import Mapping
from typing import Generic, Self, TypeVar

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)

from rollbook.records.episode_models import EpisodeFailure, EpisodeId, TaskId
from rollbook.servers.kinds.observations import AgentObservationBundle
from rollbook.servers.kinds.resources_sessions import BaseVerifyResponse
from rollbook.servers.openai.openai_response import NeMoGymResponse, NeMoGymResponseCreateParamsNonStreaming

TaskInput = TypeVar("TaskInput")
Result = TypeVar("Result")
_TASK_INPUT_KEYS = frozenset({"responses_create_params", "task_data"})


class MaterializedTask(BaseModel, Generic[TaskInput]):
    """A task with an id of its own."""

    task_id: TaskId
    task_input: TaskInput


class BaseEpisodeRequest(BaseModel, Generic[TaskInput]):
    """One attempt at a task."""

    episode_id: EpisodeId
    task: MaterializedTask[TaskInput]


class BaseEpisodeResponse(BaseModel, Generic[Result]):
    """How one attempt ended."""

    episode_id: EpisodeId
    task_id: TaskId
    result: Result | None = None
    failure: EpisodeFailure | None = None

    @model_validator(mode="after")
    def _has_one_ending(self) -> Self:
        if (self.result is None) == (self.failure is None):
            raise ValueError("an episode ends with exactly one of `result` and `failure`")
        return self


class SingleAgentTurnTaskInput(BaseModel):
    """A request for an agent, and the fields that its verifier reads."""

    responses_create_params: NeMoGymResponseCreateParamsNonStreaming
    task_data: dict[str, JsonValue] = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _fold_flat_rows(cls, row: object) -> object:
        if not isinstance(row, Mapping):
            return row
        own = {key: value for key, value in row.items() if key in _TASK_INPUT_KEYS}
        flat = {key: value for key, value in row.items() if key not in _TASK_INPUT_KEYS}
        data = own.get("task_data") or {}
        return {**own, "task_data": {**flat, **data}} if isinstance(data, Mapping) else row


class SingleAgentTurnResult(BaseVerifyResponse):
    """A verified response, the verifier's own fields, and what the agent saw."""

    model_config = ConfigDict(extra="allow")

    ng_agent_observations: AgentObservationBundle | None = None


class SingleAgentTurnFailure(EpisodeFailure):
    """A failure that may hold the response that was there by then; absent when there was none."""

    partial_response: NeMoGymResponse | None = None

    @model_serializer(mode="wrap")
    def _without_unknown_parts(self, handler: SerializerFunctionWrapHandler) -> dict[str, object]:
        fields: dict[str, object] = handler(self)
        return {key: value for key, value in fields.items() if value is not None or key == "failure_kind"}


class SingleAgentTurnRequest(BaseEpisodeRequest[SingleAgentTurnTaskInput]):
    """One attempt at a task of one agent turn."""


class SingleAgentTurnResponse(BaseEpisodeResponse[SingleAgentTurnResult]):
    """How a single agent turn ended."""

    failure: SingleAgentTurnFailure | None = None
