"""Which rollout a request belongs to."""

from rollbook import (
    RolloutContextMiddleware as RolloutContextMiddleware,
    apply_rollout_prefix as apply_rollout_prefix,
    current_rollout_id as current_rollout_id,
    maybe_rollout_id_from_run_body as maybe_rollout_id_from_run_body,
    rollout_context as rollout_context,
    rollout_id_from_run as rollout_id_from_run,
    rollout_path_prefix as rollout_path_prefix,
)
