"""Servers that somebody else started, found through their head server.

Rules:
* The configuration is the head server's; nothing here starts or stops a server.
* A head server that does not answer is an error that says what to type.

Source: servers.md §2.1, §4.3.
"""

import asyncio
from types import TracebackType
from typing import Self

from omegaconf import DictConfig

from rollbook.config.types import BaseServerConfig
from rollbook.errors import ServingError
from rollbook.records.exchange import Exchange, Reply, Upload
from rollbook.servers.head_lookup import fetch_global_config
from rollbook.servers.http.addresses import AddressBook, top_level
from rollbook.servers.http.client_settings import read_client_settings
from rollbook.servers.serving.deployment import (
    CONNECT_GRACE_SECONDS,
    CONNECT_SECONDS,
    MAX_REPLY_BYTES,
    post_once,
)
from rollbook.servers.serving.open_files import raise_open_file_limit
from rollbook.servers.wire.poster import Poster


class RemoteDeployment:
    """A running deployment, reached through its head server. `known` is its configuration, where that is at hand.

    `connect_grace`, `connect_seconds` and `max_reply_bytes` are those of `Poster`.
    """

    def __init__(
        self,
        head_server_config: BaseServerConfig,
        *,
        connect_grace: float = CONNECT_GRACE_SECONDS,
        connect_seconds: float = CONNECT_SECONDS,
        max_reply_bytes: int = MAX_REPLY_BYTES,
        known: DictConfig | None = None,
    ) -> None:
        self.head_server_config = head_server_config
        self._poster = Poster(
            connect_seconds=connect_seconds, grace_seconds=connect_grace, max_reply_bytes=max_reply_bytes
        )
        self._known = known
        self._found: tuple[DictConfig, AddressBook] | None = None

    @property
    def global_config_dict(self) -> DictConfig:
        """The deployment's resolved configuration, as its head server gave it."""
        return self._looked_up()[0]

    def _looked_up(self) -> tuple[DictConfig, AddressBook]:
        if self._found is None:
            raise ServingError("the deployment's configuration is not known yet; await start() first")
        return self._found

    async def start(self) -> None:
        """Fetch the configuration, unless it is known.

        Raises:
            HeadServerUnreachableError: no head server answers; names its URL and what to type.

        """
        config = self._known
        if config is None:
            config = await asyncio.to_thread(fetch_global_config, self.head_server_config)
        raise_open_file_limit()
        self._poster.tcp_keepalive = read_client_settings(top_level(config)).tcp_keepalive
        self._found = config, AddressBook(config)

    async def close(self) -> None:
        """Close this loop's connections; the servers go on."""
        await self._poster.aclose()

    async def send(self, server: str, path: str, body: bytes | Upload, exchange: Exchange | None = None) -> Reply:
        """POST a JSON body to a server, once; see `Deployment.send`."""
        return await post_once(self._poster, self._looked_up()[1], server, path, body, exchange=exchange)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
