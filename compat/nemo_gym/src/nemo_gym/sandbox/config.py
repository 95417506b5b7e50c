"""A sandbox's block of the configuration."""

from rollbook.sandbox import (
    resolve_provider_config as resolve_provider_config,
    resolve_provider_metadata as resolve_provider_metadata,
)
