"""Servers that rollouts can be sent to: how they are started, reached and stopped.

Rules:
* `send` posts once. A body that may have been read is never sent again, and each request has a connection of its own,
  so no reply is lost to a connection that its server closes. A redirect is a reply like any other.
* A connection that does not come up is tried until the grace is over; then the request is known not to be sent.
* Every failure names the server and its address.

Source: collection.md §3.2, §3.6, §3.7.
"""

import time
from collections.abc import Callable
from typing import Final, Protocol

from aiohttp import ClientError
from omegaconf import DictConfig

from rollbook.config.types import BaseServerConfig
from rollbook.errors import ServerRefNotFoundError
from rollbook.records.exchange import Exchange, Phase, Reply, SendFailed
from rollbook.records.failure_kinds import Delivery
from rollbook.servers.http.addresses import AddressBook
from rollbook.servers.http.delivery import delivery_of_error, delivery_of_status
from rollbook.servers.http.http_client import request

CONNECT_GRACE_SECONDS: Final = 60.0
_HEADERS: Final = {"Content-Type": "application/json"}


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

    async def send(self, server: str, path: str, body: bytes, exchange: Exchange | None = None) -> Reply:
        """POST a JSON body to a server instance, once.

        Raises:
            SendFailed: no whole reply came; says what is known of the delivery.

        """
        ...


async def post_once(
    addresses: AddressBook,
    server: str,
    path: str,
    body: bytes,
    exchange: Exchange | None = None,
    *,
    grace: float,
    gone: Callable[[], bool] | None = None,
) -> Reply:
    """POST `body` to an instance, and return the whole reply; see `Deployment.send`."""
    try:
        url = addresses.base_url(server) + path
    except ServerRefNotFoundError as error:
        raise SendFailed(str(error), delivery=Delivery.NOT_SENT, exception_type=type(error).__name__) from error
    status: int | None = None
    seen = exchange or Exchange(time.monotonic)
    seen.host = url.partition("://")[2].partition("/")[0]
    seen.enter(Phase.WAITING)
    try:
        response = await request(
            "POST",
            url,
            _internal=True,
            _server_name=server,
            _connect_grace=grace,
            _single_use=True,
            _gone=gone,
            allow_redirects=False,
            data=body,
            headers=_HEADERS,
        )
        status = seen.status = response.status
        seen.enter(Phase.READING)
        headers = {name.lower(): value for name, value in response.headers.items()}
        return Reply(status, await response.read(), headers)
    except (ClientError, TimeoutError, OSError) as error:
        raise send_failed(server, url, error, status) from error


def send_failed(server: str, url: str, error: BaseException, status: int | None) -> SendFailed:
    """Return the failure of an exchange with `server`; `status` is what was read of the reply before it broke."""
    delivery = delivery_of_error(error, one_write=True) if status is None else delivery_of_status(status)
    kind = type(error).__name__
    return SendFailed(f"{server} at {url}: {kind}: {error}", delivery=delivery, exception_type=kind, status=status)
