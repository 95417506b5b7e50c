"""Providers by name."""

from rollbook.sandbox import (
    create_provider as create_provider,
    get_provider_class as get_provider_class,
    list_providers as list_providers,
    register_provider as register_provider,
)
