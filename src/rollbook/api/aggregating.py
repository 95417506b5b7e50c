"""Which environment server a row's metrics are asked of, in a running configuration.

Rules:
* A row that names its server is scored there; any other by the one server that fronts its agent, where there is one.

Source: collection.md §6.3, §21.4.25.
"""

from rollbook.errors import ConfigError
from rollbook.plan.directory import Directory
from rollbook.verbs.light_rows import Serving


def served_by(directory: Directory) -> Serving:
    """Return what says which server of `directory` a row belongs to; None where none or several front its agent."""

    def server_of(agent: str | None, server: str | None) -> str | None:
        if server is not None:
            return server
        try:
            return directory.find(agent, None).server if agent is not None else None
        except ConfigError:
            return None

    return server_of
