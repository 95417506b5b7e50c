"""How an agent reaches a sandbox."""

from rollbook.sandbox import (
    DirectSandboxConnection as DirectSandboxConnection,
    SandboxAccess as SandboxAccess,
)
