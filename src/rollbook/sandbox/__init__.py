"""Sandboxes: where a command of a model's may run, with files of its own and an end that is certain.

Rules:
* Every public name of the room is importable from here, and resolved when it is first asked for.
* Nothing here knows a server: servers and agents make sandboxes, never the other way round.
* `rollbook.sandbox.process_supervisor` is a program to be uploaded into a sandbox; it is imported as a module.
"""

from importlib import import_module
from typing import Final

_PUBLIC: Final = {
    "rollbook.errors": (
        "SandboxConfigError SandboxCreateError SandboxCreateVerificationError SandboxError SandboxPathError "
        "SandboxPtyError"
    ),
    "rollbook.sandbox.access": "DirectSandboxConnection SandboxAccess",
    "rollbook.sandbox.async_sandbox": "AsyncSandbox",
    "rollbook.sandbox.attribution": "resolve_attribution resolve_run_id",
    "rollbook.sandbox.blocking": "Sandbox",
    "rollbook.sandbox.compose": "AsyncSandboxCompose",
    "rollbook.sandbox.config": "resolve_provider_config resolve_provider_metadata",
    "rollbook.sandbox.cpu_caps": "CPU_CAP_ENV_VARS cpu_cap_env",
    "rollbook.sandbox.images": "rewrite_image",
    "rollbook.sandbox.local.provider": "LocalProvider",
    "rollbook.sandbox.process_supervisor": "DEFAULT_CLEANUP_TIMEOUT exec_timeout",
    "rollbook.sandbox.provider": (
        "ConnectableProvider SandboxProvider SandboxPtySession SupportsBackgroundServices "
        "SupportsPauseResume SupportsPortForwarding SupportsRuntimeRequirements SupportsSandboxEndpoint "
        "SupportsSandboxNetwork SupportsSandboxPty SupportsSharedStorage"
    ),
    "rollbook.sandbox.registry": "create_provider get_provider_class list_providers register_provider",
    "rollbook.sandbox.terminals": "SandboxPty",
    "rollbook.sandbox.unshipped": "ApptainerProvider DockerCreateConfig DockerProvider",
    "rollbook.sandbox.values": (
        "SandboxEndpoint SandboxExecResult SandboxHandle SandboxPtySpec SandboxResources SandboxSpec SandboxStatus"
    ),
}
_HOMES: Final = {name: module for module, names in _PUBLIC.items() for name in names.split()}

__all__ = sorted(_HOMES)  # noqa: PLE0605  the stub lists the names one by one


def __getattr__(name: str) -> object:
    """Import the module that a public name lives in, and keep the name."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return list(__all__)
