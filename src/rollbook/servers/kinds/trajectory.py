"""`ng_trajectory`: what happened inside a rollout, turn by turn.

Rules:
* Fields that are not named here are refused: a trajectory is read by programs that were written against this shape.
* An invocation, a model call and a turn of an invocation are each there once, and a turn is of the record's rollout.
* What is not known is null or a gap, never zero.

Source: collection.md §8.4.
"""

from collections.abc import Hashable, Iterable
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, JsonValue, model_validator

from rollbook.servers.kinds.observations import AgentInvocation, ModelCallRef, ObservationGap, ToolCallObservation


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", protected_namespaces=(), defer_build=True)


class TrajectoryTurn(_Part):
    """One step of an invocation: what it was asked, what it answered, and the calls behind the answer.

    `timestamp` is in Unix seconds; `step_count` is the number of tool calls before this turn.
    """

    invocation_id: str
    task_id: str
    rollout_id: str
    turn_no: int = Field(ge=1)
    timestamp: float | None = None
    question: Any = None
    answer: Any = None
    reasoning_content: Any = None
    resolved: bool | None = None
    step_count: int = Field(default=0, ge=0)
    model_calls: list[ModelCallRef] = Field(default_factory=list)


class TrajectoryTokenStats(_Part):
    """Tokens of one model call; None: not known."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    reasoning_tokens: int | None = None
    total_tokens: int | None = None
    cached_tokens: int | None = None


class TrajectoryModelCall(_Part):
    """One captured model call. Times are Unix seconds."""

    model_call_id: str | None = None
    started_at: float | None = None
    completed_at: float | None = None
    duration_ms: float | None = None
    request: Any = None
    response: Any = None
    response_metadata: dict[str, JsonValue] = Field(default_factory=dict)
    token_stats: TrajectoryTokenStats = Field(default_factory=TrajectoryTokenStats)


class TrajectoryToolCall(ToolCallObservation):
    """One tool call, with what the tool answered."""

    output: Any = None


class TrajectoryRecord(_Part):
    """What happened inside one rollout."""

    schema_version: Literal["1.0"] = "1.0"
    task_id: str
    rollout_id: str
    invocations: list[AgentInvocation] = Field(default_factory=list)
    turns: list[TrajectoryTurn] = Field(default_factory=list)
    model_calls: list[TrajectoryModelCall] = Field(default_factory=list)
    tool_calls: list[TrajectoryToolCall] = Field(default_factory=list)
    gaps: list[ObservationGap] = Field(default_factory=list)

    @model_validator(mode="after")
    def _every_part_is_there_once(self) -> Self:
        once("invocation_id", (invocation.invocation_id for invocation in self.invocations))
        once("model_call_id", (call.model_call_id for call in self.model_calls if call.model_call_id is not None))
        once("turn", ((turn.invocation_id, turn.turn_no) for turn in self.turns))
        return self

    @model_validator(mode="after")
    def _turns_are_of_this_rollout(self) -> Self:
        for turn in self.turns:
            if (turn.task_id, turn.rollout_id) != (self.task_id, self.rollout_id):
                raise ValueError(
                    f"turn {turn.turn_no} is of task {turn.task_id!r}, rollout {turn.rollout_id!r}; "
                    f"the record is of task {self.task_id!r}, rollout {self.rollout_id!r}"
                )
        return self


def once(name: str, identities: Iterable[Hashable]) -> None:
    """Let every identity pass that is there once.

    Raises:
        ValueError: one is there twice.

    """
    seen: set[Hashable] = set()
    for identity in identities:
        if identity in seen:
            raise ValueError(f"the same {name} is there twice: {identity}")
        seen.add(identity)
