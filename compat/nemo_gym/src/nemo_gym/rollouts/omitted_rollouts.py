"""Rollouts that left no result."""

from rollbook import (
    NG_NO_PERSIST_KEY as NG_NO_PERSIST_KEY,
    NG_OMITTED_ROLLOUT_KEY as NG_OMITTED_ROLLOUT_KEY,
    is_non_superseding_rollout_row as is_non_superseding_rollout_row,
    is_omitted_rollout_row as is_omitted_rollout_row,
    is_unstarted_rollout_row as is_unstarted_rollout_row,
    omitted_rollout_record as omitted_rollout_record,
)
