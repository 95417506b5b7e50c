"""Sandboxes of Apptainer."""

from rollbook.sandbox import (
    ApptainerProvider as ApptainerProvider,
)
