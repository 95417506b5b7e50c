"""Ports on which nothing listens.

Rules:
* They lie outside what the system hands out to sockets that name none and outside what configurations draw: only
  tests that run at the same time could take one, and they draw from thousands.
"""

import random
import socket
from contextlib import ExitStack

LOWEST, HIGHEST = 20_001, 32_767
_chance = random.SystemRandom()


def free_ports(count: int) -> list[int]:
    """Return ports that were free a moment ago, all different."""
    with ExitStack() as held:
        return [held.enter_context(_bound()).getsockname()[1] for _ in range(count)]


def free_port() -> int:
    """Return a port that was free a moment ago."""
    return free_ports(1)[0]


def _bound() -> socket.socket:
    while True:
        try:
            return socket.create_server(("127.0.0.1", _chance.randint(LOWEST, HIGHEST)))
        except OSError:
            continue
