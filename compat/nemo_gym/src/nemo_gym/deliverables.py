"""Which files of a working folder are a rollout's product."""

from rollbook import (
    IGNORE_FILES as IGNORE_FILES,
    is_deliverable as is_deliverable,
)
