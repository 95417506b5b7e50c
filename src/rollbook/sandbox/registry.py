"""Which providers there are, by name.

Rules:
* A name means one class. Registering a second needs `override`.
* Installed packages add providers by an entry point in either group; what was registered by hand wins.
* An entry point is loaded when its provider is asked for, not when the names are listed.

Source: servers.md §9.4.
"""

from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Final

from rollbook.errors import SandboxConfigError
from rollbook.sandbox.config import resolve_provider_config
from rollbook.sandbox.provider import SandboxProvider

ENTRY_POINT_GROUPS: Final = ("rollbook.sandbox_providers", "nemo_gym.sandbox_providers")
UNSHIPPED: Final = {"docker": "DockerProvider", "apptainer": "ApptainerProvider"}
NAMED_BY_THE_FIELD: Final = ("daytona", "e2b", "ecs_fargate", "enroot", "opensandbox", "openshell")

ProviderClass = Callable[..., SandboxProvider]

_registered: dict[str, ProviderClass] = {}


def register_provider(name: str, provider_class: ProviderClass, *, override: bool = False) -> None:
    """Let `name` mean `provider_class` in this process.

    Raises:
        SandboxConfigError: the name is taken, and `override` is not set.

    """
    if not override and name in list_providers() and _registered.get(name) is not provider_class:
        raise SandboxConfigError(
            f"a sandbox provider named {name!r} is registered already; pass override=True to replace it"
        )
    _registered[name] = provider_class


def list_providers() -> list[str]:
    """Return the names that `get_provider_class` knows, sorted."""
    return sorted({"local", *_registered, *_installed()})


def get_provider_class(name: str) -> Any:
    """Return the class that makes providers of this name.

    Raises:
        SandboxConfigError: nobody registered the name.

    """
    if name in _registered:
        return _registered[name]
    if name == "local":
        return import_module("rollbook.sandbox.local.provider").LocalProvider
    if name in (installed := _installed()):
        return installed[name].load()
    if name in UNSHIPPED:
        return getattr(import_module("rollbook.sandbox.unshipped"), UNSHIPPED[name])
    raise SandboxConfigError(_unknown(name))


def create_provider(config: Mapping[str, Any] | str | SandboxProvider) -> SandboxProvider:
    """Return the provider that a sandbox block names, made with the block's arguments; a provider is returned as it is.

    Raises:
        SandboxConfigError: the block names no provider, several, or one that nobody registered.
        SandboxCreateError: one that Rollbook does not ship.

    """
    if isinstance(config, SandboxProvider):
        return config
    [(name, arguments)] = resolve_provider_config({config: {}} if isinstance(config, str) else config).items()
    provider: SandboxProvider = get_provider_class(name)(**arguments)
    return provider


def _installed() -> dict[str, EntryPoint]:
    found = [point for group in reversed(ENTRY_POINT_GROUPS) for point in entry_points(group=group)]
    return {point.name: point for point in found}


def _unknown(name: str) -> str:
    known = ", ".join(list_providers())
    hint = " (a provider of the field that Rollbook does not ship)" if name in NAMED_BY_THE_FIELD else ""
    return (
        f"no sandbox provider named {name!r}{hint}; there are {known}. "
        f"Register one with rollbook.sandbox.register_provider({name!r}, YourProvider)"
    )
