"""Providers that code for sandboxes names and Rollbook does not ship.

Rules:
* Their names can be imported, so that code which names them and uses another one runs.
* Making one says what is shipped, and how another is registered.
"""

from typing import ClassVar, NoReturn

from rollbook.errors import SandboxCreateError


class _Unshipped:
    name: ClassVar[str]

    def __init__(self, *_arguments: object, **_options: object) -> None:
        refuse(self.name)


class DockerProvider(_Unshipped):
    """Sandboxes as Docker containers."""

    name = "docker"


class DockerCreateConfig(_Unshipped):
    """How a Docker container is made."""

    name = "docker"


class ApptainerProvider(_Unshipped):
    """Sandboxes as Apptainer instances."""

    name = "apptainer"


def refuse(name: str) -> NoReturn:
    """Raise what every provider that is not shipped raises."""
    raise SandboxCreateError(
        f"Rollbook ships the sandbox provider 'local', and no {name!r}. Use {{local: {{}}}}, or register one: "
        f"rollbook.sandbox.register_provider({name!r}, YourProvider), or an installed package with the entry point "
        f"{name!r} in the group 'rollbook.sandbox_providers'"
    )
