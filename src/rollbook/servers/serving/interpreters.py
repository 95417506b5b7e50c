"""The interpreters of a configuration's servers, where they have one of their own.

Rules:
* A run whose components list no packages pays for a look at their folders, and loads nothing.

Source: servers.md §2.3.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from omegaconf import DictConfig

from rollbook.config.names import IGNORE_REQUIREMENTS_KEY, ISOLATE_KEY
from rollbook.config.types import ServerInstanceConfig
from rollbook.servers.serving.deployment import Tell

_LISTS: Final = ("requirements.txt", "pyproject.toml")


async def interpreters(config: DictConfig, instances: Sequence[ServerInstanceConfig], tell: Tell) -> dict[str, Path]:
    """Return the interpreter of each instance that is to run in an environment of its own, which is made if need be.

    Raises:
        MissingPackageError: packages are missing, and isolation was not asked for; names them and what to type.
        ConfigError, ServingError: an environment cannot be made.

    """
    folders = {one.name: one.dir_path for one in instances if (one.dir_path / one.entrypoint).is_file()}
    asks = not config.get(IGNORE_REQUIREMENTS_KEY) and any(map(_lists_packages, set(folders.values())))
    if not (asks or config.get(ISOLATE_KEY)):
        return {}
    from rollbook.servers.serving.isolation import interpreters_of  # noqa: PLC0415  see the rules

    return await interpreters_of(config, folders, tell)


def _lists_packages(folder: Path) -> bool:
    return any((folder / name).is_file() for name in _LISTS)
