"""Records as a run keeps them."""

from rollbook import (
    RolloutRecord as RolloutRecord,
    RolloutRecords as RolloutRecords,
    prepare_append as prepare_append,
    read_records as read_records,
)
