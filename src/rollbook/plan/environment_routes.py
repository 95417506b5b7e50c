"""A configuration's `environment_server_routes`: which environment server runs the tasks of a taskset.

Rules:
* A route is looked up when a row needs it, and once; one that cannot be read is an error for the rows that need it.
* A route that is no text, or has no value yet, is none.

Source: collection.md §2.10, §18.
"""

from collections.abc import Iterator, Mapping

from omegaconf import DictConfig
from omegaconf.errors import OmegaConfBaseException

from rollbook.errors import InputError
from rollbook.records.json_values import text_or_none

_KEY = "environment_server_routes"


class EnvironmentRoutes(Mapping[str, str]):
    """Taskset → environment server, by the configuration that it is made of."""

    def __init__(self, config: DictConfig) -> None:
        self._config = config
        self._found: dict[str, str | None] = {}

    def __getitem__(self, taskset: str) -> str:
        """Return the environment server of `taskset`.

        Raises:
            KeyError: no route names it.
            InputError: its route cannot be read; names the route.

        """
        if taskset not in self._found:
            self._found[taskset] = self._looked_up(taskset)
        server = self._found[taskset]
        if server is None:
            raise KeyError(taskset)
        return server

    def __iter__(self) -> Iterator[str]:
        """Yield the tasksets that have an entry."""
        routes = self._config.get(_KEY)
        return map(str, routes if isinstance(routes, Mapping) else ())

    def __len__(self) -> int:
        """Return how many entries there are."""
        return sum(1 for _ in self)

    def _looked_up(self, taskset: str) -> str | None:
        try:
            routes = self._config.get(_KEY)
            return text_or_none(routes.get(taskset)) if isinstance(routes, Mapping) else None
        except OmegaConfBaseException as error:
            told = str(error).partition("\n")[0]
            raise InputError(f"`{_KEY}.{taskset}` cannot be read: {told}") from None
