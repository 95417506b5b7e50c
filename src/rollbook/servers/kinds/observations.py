"""What an agent saw of its own work: invocations, tool calls, compactions, sandboxes, and what it could not see.

Rules:
* A bundle is evidence: it is carried along and never moves a reward.
* `kind` says which class a record is; a record of a kind that is not named here keeps its fields as they came.
* What could not be seen is a gap with a code; nothing is guessed to fill it.

Source: collection.md §8.3, §8.4; servers.md §3.8.
"""

from typing import Annotated, Any, Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag, model_validator

from rollbook.config.types import ModelServerRef
from rollbook.servers.openai.openai_response import NeMoGymResponse

TimingSource = Literal["executor", "artifact", "harness"]
InvocationStatus = Literal["completed", "failed", "incomplete", "unknown"]
ToolCallStatus = Literal["completed", "failed", "timeout", "cancelled", "incomplete", "unknown"]


class _Evidence(BaseModel):
    model_config = ConfigDict(extra="forbid", protected_namespaces=())


class ModelCallRef(_Evidence):
    """Which captured call is meant: its id, or a model server together with the id of the response it gave."""

    model_call_id: str | None = None
    model_ref: ModelServerRef | None = None
    response_id: str | None = None

    @model_validator(mode="after")
    def _names_a_call(self) -> Self:
        if self.model_call_id is None and (self.model_ref is None or self.response_id is None):
            raise ValueError("a reference needs model_call_id, or model_ref together with response_id")
        return self


class ObservationGap(_Evidence):
    """Something that could not be seen, by code."""

    code: str
    invocation_id: str | None = None
    detail: str | None = None


class AgentInvocation(_Evidence):
    """One agent that ran, root or spawned by a tool call of another. `duration_ms` is wall time."""

    kind: Literal["agent_invocation"] = "agent_invocation"
    invocation_id: str
    parent_invocation_id: str | None = None
    spawned_by_tool_call_id: str | None = None
    status: InvocationStatus = "unknown"
    duration_ms: float | None = None
    error_type: str | None = None
    model_calls: list[ModelCallRef] = Field(default_factory=list)
    conversation: list[Any] = Field(default_factory=list)


class ToolCallObservation(_Evidence):
    """One tool call as an agent saw it. Times are Unix seconds; `timing_source` says whose clock they are of."""

    kind: Literal["tool_call"] = "tool_call"
    invocation_id: str
    tool_call_id: str
    sandbox_id: str | None = None
    tool_name: str | None = None
    started_at: float | None = None
    completed_at: float | None = None
    duration_ms: float | None = None
    timing_source: TimingSource | None = None
    status: ToolCallStatus = "unknown"
    error_type: str | None = None


class ContextCompactionObservation(BaseModel):
    """An agent made its context shorter. `tokens_before` and `tokens_after` count the context."""

    model_config = ConfigDict(extra="allow", protected_namespaces=())

    kind: Literal["context_compaction"] = "context_compaction"
    invocation_id: str
    observed_at: float | None = None
    trigger: str | None = None
    tokens_before: int | None = None
    tokens_after: int | None = None
    outcome: str = "unknown"
    summary: Any = None
    first_kept_item_id: str | None = None
    before_model_call: ModelCallRef | None = None
    model_calls: list[ModelCallRef] = Field(default_factory=list)


class SandboxObservation(BaseModel):
    """What became of a sandbox that a rollout used; `role` says what for.

    What it used is null where nobody measured it; `resource_usage_source` says who did.
    """

    model_config = ConfigDict(extra="allow")

    kind: Literal["sandbox"] = "sandbox"
    role: str | None = None
    provider: str | None = None
    sandbox_id: str | None = None
    outcome: str = "unknown"
    exit_code: int | None = None
    error_type: str | None = None
    wall_time_s: float | None = None
    cpu_time_s: float | None = None
    peak_memory_mib: float | None = None
    resource_usage_source: str | None = None


class AgentObservation(BaseModel):
    """A record of another kind."""

    model_config = ConfigDict(extra="allow")

    kind: str = Field(min_length=1)


_KINDS: Final = {
    cls.model_fields["kind"].default: cls
    for cls in (AgentInvocation, ToolCallObservation, ContextCompactionObservation, SandboxObservation)
}


def _tag(record: Any) -> str:
    kind = record.get("kind") if isinstance(record, dict) else getattr(record, "kind", None)
    return str(kind) if kind in _KINDS else "other"


ObservationRecord = Annotated[
    Annotated[AgentInvocation, Tag("agent_invocation")]
    | Annotated[ToolCallObservation, Tag("tool_call")]
    | Annotated[ContextCompactionObservation, Tag("context_compaction")]
    | Annotated[SandboxObservation, Tag("sandbox")]
    | Annotated[AgentObservation, Tag("other")],
    Discriminator(_tag),
]


class AgentObservationBundle(BaseModel):
    """All that one agent session saw; `source` names the agent."""

    model_config = ConfigDict(extra="allow")

    source: str
    records: list[ObservationRecord] = Field(default_factory=list)
    gaps: list[ObservationGap] = Field(default_factory=list)


class AgentEpisode(BaseModel):
    """A response together with what its agent saw on the way."""

    response: NeMoGymResponse
    observations: AgentObservationBundle | None = None
