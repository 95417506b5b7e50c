"""Sandboxes that are processes of this machine."""

from rollbook.sandbox import (
    LocalProvider as LocalProvider,
)
