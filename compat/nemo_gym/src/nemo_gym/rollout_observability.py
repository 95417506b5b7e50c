"""What went on inside of a rollout."""

from rollbook import (
    AgentObservation as AgentObservation,
    AgentObservationBundle as AgentObservationBundle,
    ObservationGap as ObservationGap,
)
