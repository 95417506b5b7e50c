"""Which servers run in an environment of their own, and the interpreters of those.

Rules:
* A component runs here when this interpreter has what it asks for. Where it has not, that is an error that names both
  ways out, unless isolation was asked for.
* What ships with Rollbook is never isolated for being somebody else's.
* Whatever is wrong with any of the servers is told at once, before anything is installed.

Source: servers.md §2.3.
"""

import shlex
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path

import msgspec
from omegaconf import DictConfig

from rollbook.config.names import IGNORE_REQUIREMENTS_KEY, ISOLATE_KEY
from rollbook.config.roots import PARENT_DIR
from rollbook.errors import ConfigError, MissingPackageError
from rollbook.servers.serving.deployment import Tell
from rollbook.servers.serving.own_distributions import NAMES, installed
from rollbook.servers.serving.requirement_lines import without_credentials
from rollbook.servers.serving.requirements import Needs, missing_names, needs_of


class Isolation(StrEnum):
    """Which components get an environment of their own: none, those that need one, or all that do not ship."""

    NONE = "none"
    UNMET = "unmet"
    ALL = "all"


class Component(msgspec.Struct, frozen=True):
    """A component's folder, and what this interpreter lacks of what it asks for."""

    needs: Needs
    lacking: tuple[str, ...]
    wants_names: bool

    @property
    def ships(self) -> bool:
        """Whether it comes with Rollbook."""
        return self.needs.folder.is_relative_to(PARENT_DIR)


def isolation_of(config: Mapping[str, object] | DictConfig) -> Isolation:
    """Return what the configuration says of isolation.

    Raises:
        ConfigError: it says something else.

    """
    given = config.get(ISOLATE_KEY)
    if isinstance(given, bool) or given is None:
        return Isolation.UNMET if given else Isolation.NONE
    try:
        return Isolation(str(given))
    except ValueError as error:
        raise ConfigError(f"`{ISOLATE_KEY}` is {given!r}; write one of {', '.join(Isolation)}") from error


def component_in(folder: Path) -> Component:
    """Return the component in `folder` with what this interpreter lacks of what it asks for."""
    return component_with(needs_of(folder))


def component_with(needs: Needs) -> Component:
    """Return the component that has `needs` with what this interpreter lacks of them."""
    wants_names = needs.field_names and installed(NAMES) is None
    if not needs.packages and not needs.extras:
        return Component(needs, (), wants_names)
    from rollbook.servers.serving.unmet import unmet  # noqa: PLC0415  most components ask for nothing

    return Component(needs, tuple(map(str, unmet(needs))), wants_names)


async def interpreters_of(config: DictConfig, folders: Mapping[str, Path], tell: Tell) -> dict[str, Path]:
    """Return the interpreter of each instance that is to run in an environment of its own; see `interpreters`."""
    isolation = isolation_of(config)
    components = {folder: component_in(folder) for folder in dict.fromkeys(folders.values())}
    refuse_unmet(config, components.values())
    isolated = [one.needs for one in components.values() if is_isolated(one, isolation)]
    if not isolated:
        return {}
    from rollbook.servers.serving.isolated_pythons import pythons_for  # noqa: PLC0415  most runs install nothing

    found = await pythons_for(config, isolated, tell)
    return {name: found[folder] for name, folder in folders.items() if folder in found}


def is_isolated(component: Component, isolation: Isolation) -> bool:
    """Whether a component gets an environment of its own."""
    if isolation is Isolation.ALL:
        return not component.ships or bool(component.lacking)
    return isolation is Isolation.UNMET and bool(component.lacking)


def refuse_unmet(config: Mapping[str, object] | DictConfig, components: Iterable[Component]) -> None:
    """Refuse components that cannot run as they are to be run.

    Raises:
        MissingPackageError: names all that is missing, and what to type.

    """
    found = list(components)
    for one in found:
        if one.wants_names:
            raise missing_names(one.needs.component)
    if isolation_of(config) is not Isolation.NONE or config.get(IGNORE_REQUIREMENTS_KEY):
        return
    lacking = [one for one in found if one.lacking]
    if lacking:
        raise MissingPackageError(_ways_out(lacking))


def _ways_out(lacking: Sequence[Component]) -> str:
    lines = "; ".join(f"{one.needs.component} asks for {', '.join(one.lacking)}" for one in lacking)
    wanted = dict.fromkeys(text.partition(" (")[0] for one in lacking for text in one.lacking)
    return without_credentials(
        f"packages are missing: {lines}. Install them here (pip install {' '.join(map(shlex.quote, wanted))}), have an "
        f"environment made for them (--isolate), or, where they are not needed, go on without "
        f"(++{IGNORE_REQUIREMENTS_KEY}=true)"
    )
