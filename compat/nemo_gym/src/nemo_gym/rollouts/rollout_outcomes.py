"""How a rollout ended."""

from rollbook import (
    RolloutFailure as RolloutFailure,
    RolloutFailureRecord as RolloutFailureRecord,
)
