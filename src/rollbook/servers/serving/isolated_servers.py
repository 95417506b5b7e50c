"""The servers of an embedded deployment that have a process and an environment of their own.

Rules:
* A child that ends on its own is an error while servers start, and is logged with the end of its log afterwards; what
  is sent to it from then on is known not to arrive.
* They are stopped before the servers that they call.

Source: servers.md §2.3.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from omegaconf import DictConfig

from rollbook.config.types import ServerInstanceConfig
from rollbook.servers.http.addresses import port_key_of
from rollbook.servers.http.embedded_registry import bound_socket
from rollbook.servers.serving.address import address_of
from rollbook.servers.serving.process_group import ProcessGroup

_LOG = logging.getLogger(__name__)
_WATCH_SECONDS: Final = 0.25


class IsolatedServers:
    """Children beside the servers of this process. Logs go to `<log_dir>/<instance>.log`."""

    def __init__(self, global_config_dict: DictConfig, log_dir: Path) -> None:
        self._config = global_config_dict
        self._group = ProcessGroup(global_config_dict, log_dir)
        self._watching: asyncio.Task[None] | None = None

    def start(self, instances: Sequence[ServerInstanceConfig], pythons: Mapping[str, Path]) -> None:
        """Start `instances` under their interpreters.

        Raises:
            PortTakenError, ServingError: one of them cannot be started.

        """
        for instance in instances:
            host, port = address_of(self._config, instance)
            key = port_key_of(self._config, instance.name)
            bound_socket(host, port, name=instance.name, port_key=key).close()
        self._group.spawn(instances, pythons)

    async def wait_until_up(self) -> None:
        """Return when every child answers; from then on, one that ends is told.

        Raises:
            ServerDiedError, ServingError: one ended, or did not answer in time.

        """
        await self._group.wait_until_all_are_up()
        self._watching = asyncio.ensure_future(self._watch())

    async def _watch(self) -> None:
        while True:
            self._group.tell_ended(_tell)
            await asyncio.sleep(_WATCH_SECONDS)

    def gone(self, server: str) -> Callable[[], bool] | None:
        """Return what tells whether a child has ended; None for a server that is none."""
        return self._group.gone(server) if self._group.serves(server) else None

    async def close(self) -> None:
        """Stop every child, and what they started."""
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.wait({self._watching})
            self._group.tell_ended(_tell)
            self._watching = None
        await self._group.close()


def _tell(text: str) -> None:
    _LOG.error("%s", text)
