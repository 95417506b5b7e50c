"""What a provider is asked for, and what it answers."""

from rollbook.sandbox import (
    ConnectableProvider as ConnectableProvider,
    SandboxCreateError as SandboxCreateError,
    SandboxEndpoint as SandboxEndpoint,
    SandboxExecResult as SandboxExecResult,
    SandboxHandle as SandboxHandle,
    SandboxProvider as SandboxProvider,
    SandboxResources as SandboxResources,
    SandboxSpec as SandboxSpec,
    SandboxStatus as SandboxStatus,
    SupportsSandboxEndpoint as SupportsSandboxEndpoint,
)
