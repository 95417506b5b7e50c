"""Sandboxes: what runs untrusted commands, and how it is asked."""

from rollbook.sandbox import (
    AsyncSandbox as AsyncSandbox,
    AsyncSandboxCompose as AsyncSandboxCompose,
    Sandbox as Sandbox,
    SandboxCreateError as SandboxCreateError,
    SandboxEndpoint as SandboxEndpoint,
    SandboxExecResult as SandboxExecResult,
    SandboxHandle as SandboxHandle,
    SandboxResources as SandboxResources,
    SandboxSpec as SandboxSpec,
    SandboxStatus as SandboxStatus,
    SupportsSandboxEndpoint as SupportsSandboxEndpoint,
    create_provider as create_provider,
    get_provider_class as get_provider_class,
    list_providers as list_providers,
    register_provider as register_provider,
    resolve_provider_config as resolve_provider_config,
    resolve_provider_metadata as resolve_provider_metadata,
    rewrite_image as rewrite_image,
)
