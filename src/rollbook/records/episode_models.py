"""What travels in episode requests and replies: an attempt's and a task's identity, and how an episode failed.

Rules:
* Who reads saved runs does without these models, and without what it takes to load them.

Source: collection.md §4.5; servers.md §3.7, §3.10.
"""

from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, SerializerFunctionWrapHandler, model_serializer

from rollbook.records.failure_kinds import FailureStage
from rollbook.records.identity import capture_key, checked_rollout_id


def _not_an_attempt(value: str) -> str:
    return checked_rollout_id(value)


class EpisodeId(BaseModel):
    """One attempt of one rollout, as it travels in an episode request."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    rollout_id: Annotated[str, AfterValidator(_not_an_attempt)]
    attempt: int = Field(default=0, ge=0)

    @property
    def capture_key(self) -> str:
        """The name of this attempt in URLs and capture files."""
        return capture_key(self.rollout_id, self.attempt)


class TaskId(BaseModel):
    """A task's own name inside the set it belongs to."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    taskset: str = Field(min_length=1)
    task_id: str = Field(min_length=1)


class EpisodeFailure(BaseModel):
    """How an episode failed, as an environment server reports it. `stage` is left out of JSON when unknown."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    failure_reason: str = Field(max_length=2000)
    terminal: bool
    failure_kind: str | None = None
    stage: FailureStage | None = None

    @model_serializer(mode="wrap")
    def _without_unknown_stage(self, handler: SerializerFunctionWrapHandler) -> dict[str, object]:
        fields: dict[str, object] = handler(self)
        if fields.get("stage") is None:
            fields.pop("stage", None)
        return fields
