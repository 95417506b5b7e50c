"""Tasks of several services, in the words of a Compose file.

Rules:
* The name exists so that code which may need it can be imported; using it says what is missing.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from rollbook.errors import SandboxCreateError
from rollbook.sandbox.provider import SandboxProvider
from rollbook.sandbox.values import SandboxSpec


class AsyncSandboxCompose:
    """One sandbox for each service of a Compose file, on a network of their own.

    The provider `local` has neither images nor a network that services could share, so there is nothing here to start
    them with.
    """

    def __init__(
        self,
        provider: Mapping[str, Any] | SandboxProvider,
        compose_path: str | Path,
        *,
        service_specs: Mapping[str, SandboxSpec] | None = None,
        timeout_s: float | None = None,
    ) -> None:
        self.provider = provider
        self.compose_path = Path(compose_path)
        self.service_specs = dict(service_specs or {})
        self.timeout_s = timeout_s

    async def start(self) -> Self:
        """Say what is missing.

        Raises:
            SandboxCreateError: always.

        """
        raise SandboxCreateError(
            f"{self.compose_path} describes several services; Rollbook starts one sandbox at a time. Services need a "
            "provider with images and a network that sandboxes share, and 'local' has neither"
        )

    async def stop(self) -> None:
        """Do nothing: nothing was started."""
