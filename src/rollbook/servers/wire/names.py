"""Where host names lead, asked once and remembered for a while.

Rules:
* A numeric address is asked of nobody. Those who ask for one name together wait for one answer.
* A failure is remembered too, for less than the pause before the next attempt.

Source: servers.md §4.1.
"""

import asyncio
import ipaddress
import socket
from collections.abc import Sequence
from typing import Final

_GOOD_SECONDS: Final = 10.0
_BAD_SECONDS: Final = 0.25


class Names:
    """The numeric addresses of hosts."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, int], tuple[float, Sequence[str] | OSError]] = {}
        self._asking: dict[tuple[str, int], asyncio.Lock] = {}

    async def addresses(self, host: str, port: int) -> Sequence[str]:
        """Return the numeric addresses of `host`, the preferred ones first.

        Raises:
            OSError: it has none, as `socket.gaierror`.

        """
        if _is_numeric(host):
            return (host,)
        key = host, port
        async with self._asking.setdefault(key, asyncio.Lock()):
            loop = asyncio.get_running_loop()
            until, found = self._known.get(key, (0.0, ()))
            if loop.time() >= until:
                found = await _asked(loop, host, port)
                self._known[key] = loop.time() + (_BAD_SECONDS if isinstance(found, OSError) else _GOOD_SECONDS), found
        if isinstance(found, OSError):
            raise found
        return found


async def _asked(loop: asyncio.AbstractEventLoop, host: str, port: int) -> Sequence[str] | OSError:
    try:
        infos = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError as error:
        return error
    return tuple(dict.fromkeys(str(info[4][0]) for info in infos))


def _is_numeric(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
