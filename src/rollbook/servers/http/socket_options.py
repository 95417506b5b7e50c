"""How the sockets of servers and clients are set.

Rules:
* Small writes go out at once, and the kernel probes an idle peer; what a platform lacks is left out.

Source: servers.md §3.2, §4.1.
"""

import socket
from collections.abc import Mapping
from typing import Final

TCP_KEEPALIVE: Final = {"TCP_KEEPIDLE": 60, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 3}


def tune_socket(sock: socket.socket, options: Mapping[str, int] = TCP_KEEPALIVE) -> None:
    """Set the options of one connection."""
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in options.items():
        option = getattr(socket, name, None)
        if option is not None:
            sock.setsockopt(socket.IPPROTO_TCP, option, value)
