"""A row turned into a task."""

from rollbook import (
    materialize_task as materialize_task,
)
