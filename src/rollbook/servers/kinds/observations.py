"""What an agent saw of its own work: invocations, tool calls, sandboxes, and what it could not see.

Rules:
* A bundle is evidence: it is carried along and never moves a reward.
* An observation keeps the fields of its kind as they came; whoever builds a trajectory reads them.

Source: collection.md §8.4; servers.md §3.8.
"""

from pydantic import BaseModel, ConfigDict, Field


class AgentObservation(BaseModel):
    """One thing that an agent saw; `kind` says which other fields it has."""

    model_config = ConfigDict(extra="allow")

    kind: str = Field(min_length=1)


class ObservationGap(BaseModel):
    """Something that could not be seen, by code."""

    model_config = ConfigDict(extra="forbid")

    code: str
    invocation_id: str | None = None
    detail: str | None = None


class AgentObservationBundle(BaseModel):
    """All that one agent session saw."""

    model_config = ConfigDict(extra="allow")

    observations: list[AgentObservation] = Field(default_factory=list)
    gaps: list[ObservationGap] = Field(default_factory=list)
