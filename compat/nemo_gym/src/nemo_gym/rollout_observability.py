"""What went on inside of a rollout."""

from rollbook import (
    AgentEpisode as AgentEpisode,
    AgentInvocation as AgentInvocation,
    AgentObservation as AgentObservation,
    AgentObservationBundle as AgentObservationBundle,
    ContextCompactionObservation as ContextCompactionObservation,
    ModelCallRef as ModelCallRef,
    ObservationGap as ObservationGap,
    SandboxObservation as SandboxObservation,
    ToolCallObservation as ToolCallObservation,
    TrajectoryRecord as TrajectoryRecord,
    TrajectoryToolCall as TrajectoryToolCall,
    TrajectoryTurn as TrajectoryTurn,
    join_model_call_observations as join_model_call_observations,
)
