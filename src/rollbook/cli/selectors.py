"""`--config`, `--environment NAME[/FLAVOR]` and their like → the configuration files that they name.

Rules:
* A selector is shorthand for one file under the search roots; `--config` names a file outright.
* Files are merged in one order, whatever the order of the flags: config, benchmark, environment, resources server,
  model, agent. The file that loads later overrides.

Source: servers.md §10.1.
"""

from collections.abc import Mapping
from typing import Final

from rollbook.config.catalog import Shelf, selected_path

SHELF_OF: Final[Mapping[str, Shelf]] = {
    "benchmark": Shelf.BENCHMARK,
    "environment": Shelf.ENVIRONMENT,
    "resources_server": Shelf.RESOURCES_SERVER,
    "model_type": Shelf.MODEL,
    "agent_type": Shelf.AGENT,
}
"""Parameters of selector flags, in the order in which their files are merged."""


def config_paths_of(given: Mapping[str, object]) -> list[str]:
    """Return the files that `--config` and the selectors name, in the order in which they are merged.

    Raises:
        ConfigPathNotFoundError: a name that no root holds.

    """
    paths = list(_texts(given.get("config")))
    for parameter, shelf in SHELF_OF.items():
        paths += [str(selected_path(shelf, name)) for name in _texts(given.get(parameter))]
    return list(dict.fromkeys(paths))


def _texts(value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        return (value,)
    return tuple(str(item) for item in value) if isinstance(value, tuple) else ()
