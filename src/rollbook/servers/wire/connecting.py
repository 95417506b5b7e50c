"""A connection to an endpoint, brought up within a limit.

Rules:
* Every address that a host has is tried in turn, with an equal share of the limit each, so that one that swallows what
  it is sent does not hide the next.
* What was begun and did not come up leaves no socket.

Source: servers.md §4.1; collection.md §3.6.
"""

import asyncio
import ssl
from collections.abc import Callable
from functools import cache

from rollbook.servers.wire.broken import Broken, Kind, not_connected
from rollbook.servers.wire.connection import Connection
from rollbook.servers.wire.names import Names
from rollbook.servers.wire.target import Endpoint


@cache
def _trusted() -> ssl.SSLContext:
    return ssl.create_default_context()


async def connected(endpoint: Endpoint, names: Names, seconds: float, make: Callable[[], Connection]) -> Connection:
    """Return a connection to `endpoint`; `seconds` bound the attempt.

    Raises:
        Broken: it did not come up; nothing was sent.

    """
    too_late = f"no connection within {seconds:g} s"
    try:
        async with asyncio.timeout(seconds):
            addresses = await names.addresses(endpoint.host, endpoint.port)
    except TimeoutError as error:
        raise Broken(Kind.TOO_LATE, f"{endpoint.host} was not looked up within {seconds:g} s") from error
    except (OSError, UnicodeError) as error:
        raise not_connected(error) from error
    fault = Broken(Kind.UNKNOWN_HOST, f"{endpoint.host} has no address")
    for address in addresses:
        try:
            async with asyncio.timeout(seconds / len(addresses)) as limit:
                return await _opened(endpoint, address, make)
        except (OSError, UnicodeError) as error:
            fault = Broken(Kind.TOO_LATE, too_late) if limit.expired() else not_connected(error)
            fault.__cause__ = error
    raise fault


async def _opened(endpoint: Endpoint, address: str, make: Callable[[], Connection]) -> Connection:
    loop = asyncio.get_running_loop()
    if endpoint.tls:
        _, made = await loop.create_connection(
            make, address, endpoint.port, ssl=_trusted(), server_hostname=endpoint.host
        )
    else:
        _, made = await loop.create_connection(make, address, endpoint.port)
    if made.closed:
        raise ConnectionResetError("the server closed the connection before anything was sent")
    return made
