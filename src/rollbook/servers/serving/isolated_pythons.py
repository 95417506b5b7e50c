"""The interpreters of components that run in an environment of their own.

Rules:
* What an environment holds follows from the component's files, what is installed of ours, and the Python; the
  configuration says where it lies and how it is made.
* Environments are made one after the other.

Source: servers.md §1.5, §2.3.
"""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from omegaconf import DictConfig

from rollbook.config.roots import WORKING_DIR
from rollbook.errors import ConfigError
from rollbook.servers.serving.deployment import Tell
from rollbook.servers.serving.install_command import RunCommand, run_command
from rollbook.servers.serving.installers import installer
from rollbook.servers.serving.own_distributions import own_lines
from rollbook.servers.serving.requirement_lines import asked
from rollbook.servers.serving.requirements import Needs
from rollbook.servers.serving.virtual_environment import Contents, VirtualEnvironments

_ENVIRONMENTS: Final = "environments"
_TEST_PACKAGES: Final = ("pytest", "pytest-asyncio")
_PATIENCE_SECONDS: Final = 1800.0


async def pythons_for(
    config: Mapping[str, object] | DictConfig,
    components: Sequence[Needs],
    tell: Tell,
    run: RunCommand | None = None,
    *,
    for_tests: bool = False,
) -> dict[Path, Path]:
    """Return the interpreter of each component's environment, by the component's folder; they are made in turn.

    Raises:
        ConfigError, ServingError: one cannot be made.

    """
    if not components:
        return {}
    for one in components:
        if one.unknown:
            raise ConfigError(f"no environment can be made for {one.component}: {one.unknown}")
    shop = _shop(config, tell, run or run_command)
    found: dict[Path, Path] = {}
    for one in components:
        present = one.folder / ".venv" / "bin" / "python"
        if config.get("skip_venv_if_present") and present.is_file():
            found[one.folder] = present
        else:
            contents = _contents(one, config, shop, for_tests=for_tests)
            found[one.folder] = await shop.python_for(contents, one.component)
    return found


def _shop(config: Mapping[str, object] | DictConfig, tell: Tell, run: RunCommand) -> VirtualEnvironments:
    cache = Path(str(config.get("cache_dir") or WORKING_DIR / "cache"))
    given = config.get("uv_venv_dir")
    folder = Path(str(given)).expanduser().absolute() if given else cache / _ENVIRONMENTS
    patience = config.get("uv_lock_timeout_seconds")
    uv_cache = config.get("uv_cache_dir")
    return VirtualEnvironments(
        folder,
        installer(verbose=bool(config.get("pip_install_verbose"))),
        tell,
        run,
        float(str(patience)) if patience is not None else _PATIENCE_SECONDS,
        {"UV_CACHE_DIR": str(uv_cache)} if uv_cache else {},
    )


def _contents(
    needs: Needs, config: Mapping[str, object] | DictConfig, shop: VirtualEnvironments, *, for_tests: bool
) -> Contents:
    tests = _TEST_PACKAGES if for_tests or needs.for_tests else ()
    given = config.get("python_version")
    return Contents(
        own_lines(needs.extras, with_names=needs.field_names),
        (*_overridden(needs), *tests),
        needs.options,
        needs.overrides,
        shop.installer.interpreter(str(given)) if given else sys.executable,
        str(given) if given else ".".join(map(str, sys.version_info[:3])),
    )


def _overridden(needs: Needs) -> tuple[str, ...]:
    """Return the component's packages with overrides in the place of lines for the same packages."""
    instead = {asked(line, needs.folder).name: line for line in needs.overrides}
    return tuple(instead.get(asked(line, needs.folder).name or line, line) for line in needs.packages)
