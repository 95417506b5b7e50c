from rollbook.errors import (
    SandboxConfigError,
    SandboxCreateError,
    SandboxCreateVerificationError,
    SandboxError,
    SandboxPathError,
    SandboxPtyError,
)
from rollbook.sandbox.access import (
    DirectSandboxConnection,
    SandboxAccess,
)
from rollbook.sandbox.async_sandbox import (
    AsyncSandbox,
)
from rollbook.sandbox.attribution import (
    resolve_attribution,
    resolve_run_id,
)
from rollbook.sandbox.blocking import (
    Sandbox,
)
from rollbook.sandbox.compose import (
    AsyncSandboxCompose,
)
from rollbook.sandbox.config import (
    resolve_provider_config,
    resolve_provider_metadata,
)
from rollbook.sandbox.cpu_caps import (
    CPU_CAP_ENV_VARS,
    cpu_cap_env,
)
from rollbook.sandbox.images import (
    rewrite_image,
)
from rollbook.sandbox.local.provider import (
    LocalProvider,
)
from rollbook.sandbox.process_supervisor import (
    DEFAULT_CLEANUP_TIMEOUT,
    exec_timeout,
)
from rollbook.sandbox.provider import (
    ConnectableProvider,
    SandboxProvider,
    SandboxPtySession,
    SupportsBackgroundServices,
    SupportsPauseResume,
    SupportsPortForwarding,
    SupportsRuntimeRequirements,
    SupportsSandboxEndpoint,
    SupportsSandboxNetwork,
    SupportsSandboxPty,
    SupportsSharedStorage,
)
from rollbook.sandbox.registry import (
    create_provider,
    get_provider_class,
    list_providers,
    register_provider,
)
from rollbook.sandbox.terminals import (
    SandboxPty,
)
from rollbook.sandbox.unshipped import (
    ApptainerProvider,
    DockerCreateConfig,
    DockerProvider,
)
from rollbook.sandbox.values import (
    SandboxEndpoint,
    SandboxExecResult,
    SandboxHandle,
    SandboxPtySpec,
    SandboxResources,
    SandboxSpec,
    SandboxStatus,
)

__all__ = [
    "CPU_CAP_ENV_VARS",
    "DEFAULT_CLEANUP_TIMEOUT",
    "ApptainerProvider",
    "AsyncSandbox",
    "AsyncSandboxCompose",
    "ConnectableProvider",
    "DirectSandboxConnection",
    "DockerCreateConfig",
    "DockerProvider",
    "LocalProvider",
    "Sandbox",
    "SandboxAccess",
    "SandboxConfigError",
    "SandboxCreateError",
    "SandboxCreateVerificationError",
    "SandboxEndpoint",
    "SandboxError",
    "SandboxExecResult",
    "SandboxHandle",
    "SandboxPathError",
    "SandboxProvider",
    "SandboxPty",
    "SandboxPtyError",
    "SandboxPtySession",
    "SandboxPtySpec",
    "SandboxResources",
    "SandboxSpec",
    "SandboxStatus",
    "SupportsBackgroundServices",
    "SupportsPauseResume",
    "SupportsPortForwarding",
    "SupportsRuntimeRequirements",
    "SupportsSandboxEndpoint",
    "SupportsSandboxNetwork",
    "SupportsSandboxPty",
    "SupportsSharedStorage",
    "cpu_cap_env",
    "create_provider",
    "exec_timeout",
    "get_provider_class",
    "list_providers",
    "register_provider",
    "resolve_attribution",
    "resolve_provider_config",
    "resolve_provider_metadata",
    "resolve_run_id",
    "rewrite_image",
]
