"""Servers that rollouts can be sent to: how they are started, reached and stopped.

Rules:
* `send` posts once. A body that may have been read is never sent again, and no connection is used that its server may
  be closing. A redirect is a reply like any other.
* A connection that does not come up is tried until the grace is over; then the request is known not to be sent.
* A server of this process is called in this process, whoever serves the rest.
* Every failure names the server and its address.

Source: collection.md §3.2, §3.6, §3.7.
"""

import sys
import time
from collections.abc import Callable
from typing import Final, Protocol

from omegaconf import DictConfig

from rollbook.config.types import BaseServerConfig
from rollbook.errors import ServerRefNotFoundError
from rollbook.records.exchange import Exchange, Reply, SendFailed, Upload
from rollbook.records.failure_kinds import Delivery
from rollbook.servers.http.addresses import AddressBook
from rollbook.servers.wire.poster import CONNECT_GRACE_SECONDS, CONNECT_SECONDS, MAX_REPLY_BYTES, Poster

__all__ = ["CONNECT_GRACE_SECONDS", "CONNECT_SECONDS", "MAX_REPLY_BYTES", "Children", "Deployment", "Tell", "post_once"]

Tell = Callable[[str], None]
"""Told one line at a time what takes long while servers start."""

_EMBEDDED: Final = "rollbook.servers.http.embedded_registry"


def hosts_servers() -> bool:
    """Whether servers run in this process; where nothing has brought them along, none do."""
    if _EMBEDDED not in sys.modules:
        return False
    from rollbook.servers.http import embedded_registry  # noqa: PLC0415  brings aiohttp along

    return embedded_registry.hosts_servers()


class Deployment(Protocol):
    """A set of servers under one configuration."""

    @property
    def head_server_config(self) -> BaseServerConfig:
        """Where the head server listens."""
        ...

    @property
    def global_config_dict(self) -> DictConfig:
        """The resolved configuration."""
        ...

    async def start(self) -> None:
        """Have every server ready, or raise `ServingError` with none left running."""
        ...

    async def close(self) -> None:
        """Stop what `start` started; closing twice does no harm."""
        ...

    async def send(self, server: str, path: str, body: bytes | Upload, exchange: Exchange | None = None) -> Reply:
        """POST a JSON body to a server instance, once.

        Raises:
            SendFailed: no whole reply came; says what is known of the delivery.

        """
        ...


class Children(Protocol):
    """Servers of a deployment that run in processes beside it."""

    async def wait_until_up(self) -> None:
        """Return when every one of them answers, or raise `ServingError`."""
        ...

    def gone(self, server: str) -> Callable[[], bool] | None:
        """Return what tells whether one of them has ended; None for a server that is none of them."""
        ...

    async def close(self) -> None:
        """Stop them."""
        ...


async def post_once(
    poster: Poster,
    addresses: AddressBook,
    server: str,
    path: str,
    body: bytes | Upload,
    *,
    exchange: Exchange | None = None,
    gone: Callable[[], bool] | None = None,
) -> Reply:
    """POST `body` to an instance, and return the whole reply; see `Deployment.send`."""
    try:
        url = addresses.base_url(server) + path
    except ServerRefNotFoundError as error:
        raise SendFailed(str(error), delivery=Delivery.NOT_SENT, exception_type=type(error).__name__) from error
    seen = Exchange(time.monotonic) if exchange is None else exchange
    if _EMBEDDED in sys.modules:
        from rollbook.servers.http.embedded_post import post_embedded  # noqa: PLC0415  brings aiohttp along

        reply = await post_embedded(server, url, body, seen, poster.max_reply_bytes)
        if reply is not None:
            return reply
    return await poster.post(server, url, body, seen, gone=gone)
