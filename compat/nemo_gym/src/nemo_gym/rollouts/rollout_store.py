"""A run's folder, and who owns it."""

from rollbook import (
    RolloutStore as RolloutStore,
    journal_path_for as journal_path_for,
    resolve_rollout_owner as resolve_rollout_owner,
    resolve_rollout_path as resolve_rollout_path,
)
