"""Hosts and ports for servers that name none.

Rules:
* An address that the configuration gives is kept; two servers of one configuration never share one.
* Chance and the network are arguments: which port is tried, and whether it is free.

Source: servers.md §1.5, Host/port.
"""

import errno
import random
import socket
from collections.abc import Callable, Collection
from typing import Final

import msgspec

from rollbook.config.names import HEAD_SERVER_KEY, SERVER_TYPES
from rollbook.config.tree import Tree, block_of, blocks, mapping_at
from rollbook.errors import ConfigError

DEFAULT_HOST: Final = "127.0.0.1"
DEFAULT_HEAD_SERVER_PORT: Final = 11000
DEFAULT_PORT_RANGE: Final = (10001, 20000)
OFFLINE_PORT: Final = -1
_TRIES: Final = 50
_HIGHEST_PORT: Final = 65535


def port_is_free(host: str, port: int) -> bool:
    """Tell whether a server could listen on `host:port`; on another machine's address it is taken to be free."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((host, port))
    except OSError as error:
        return error.errno == errno.EADDRNOTAVAIL
    return True


def _random_port(low: int, high: int) -> int:
    return random.SystemRandom().randint(low, high)


class PortSource(msgspec.Struct, frozen=True):
    """Where ports come from: `choose(low, high)` proposes one, `is_free(host, port)` asks the machine."""

    choose: Callable[[int, int], int] = _random_port
    is_free: Callable[[str, int], bool] = port_is_free


def with_addresses(tree: Tree, view: Tree, ports: PortSource, *, offline: bool, private_head: bool = False) -> Tree:
    """Return `tree` with host and port in every server block and in `head_server`; `view` is the same, resolved.

    A `private_head` that no source gives a port is given a free one, as the servers are.

    Raises:
        ConfigError: no free port in the range, or two servers on one address.

    """
    host = _host(view)
    if not isinstance(view.get(HEAD_SERVER_KEY) or {}, dict):
        raise ConfigError(f"`{HEAD_SERVER_KEY}` is no mapping; write {HEAD_SERVER_KEY}: {{host: <host>, port: <port>}}")
    head = mapping_at(tree, HEAD_SERVER_KEY) or mapping_at(view, HEAD_SERVER_KEY) or {}
    given = {key: value for key, value in head.items() if value is not None}
    usual = (
        _free_port(view, host, ports, _disallowed(view) | _given_ports(view))
        if private_head
        else DEFAULT_HEAD_SERVER_PORT
    )
    result: Tree = {**tree, HEAD_SERVER_KEY: {"host": host, "port": usual, **given}}
    taken = _given_ports({**view, HEAD_SERVER_KEY: result[HEAD_SERVER_KEY]})
    taken.update(_disallowed(view))
    for server_type in SERVER_TYPES:
        for name, implementation, block in blocks(tree, server_type):
            shown = mapping_at(view, name, server_type, implementation) or block
            filled = dict(block)
            filled["host"] = host if shown.get("host") is None else block["host"]
            if shown.get("port") is None:
                filled["port"] = (
                    OFFLINE_PORT if offline else _free_port(view, str(shown.get("host") or host), ports, taken)
                )
            result[name] = {**(mapping_at(tree, name) or {}), server_type: {implementation: filled}}
    return result


def find_open_port(
    disallowed_ports: Collection[int] | None = None,
    max_retries: int = _TRIES,
    port_range_low: int = DEFAULT_PORT_RANGE[0],
    port_range_high: int = DEFAULT_PORT_RANGE[1],
) -> int:
    """Return a port from the range, both ends included, on which a server of this machine could listen.

    Raises:
        ConfigError: none was free in `max_retries` random tries.

    """
    return _drawn_port(
        PortSource(), DEFAULT_HOST, (port_range_low, port_range_high), set(disallowed_ports or ()), max_retries
    )


def _given_ports(view: Tree) -> set[int]:
    """Return the ports that the configuration names, the head server's among them."""
    owners: dict[tuple[str, int], str] = {}
    for name in view:
        found = block_of(view, name)
        block = found[2] if found is not None else mapping_at(view, name) if name == HEAD_SERVER_KEY else None
        port = block.get("port") if block is not None else None
        if block is None or not isinstance(port, int) or port <= 0:
            continue
        address = (str(block.get("host") or DEFAULT_HOST), port)
        if address in owners:
            raise ConfigError(
                f"`{owners[address]}` and `{name}` are both to listen on port {port}; give one of them another `port`"
            )
        owners[address] = name
    return {port for _, port in owners}


def _free_port(view: Tree, host: str, ports: PortSource, taken: set[int]) -> int:
    if "${" in host:
        return OFFLINE_PORT
    low, high = (
        _port(view, "port_range_low", DEFAULT_PORT_RANGE[0]),
        _port(view, "port_range_high", DEFAULT_PORT_RANGE[1]),
    )
    if low > high:
        raise ConfigError(f"port_range_low={low} is above port_range_high={high}; swap them")
    port = _drawn_port(ports, host, (low, high), taken, _TRIES)
    taken.add(port)
    return port


def _drawn_port(ports: PortSource, host: str, bounds: tuple[int, int], taken: Collection[int], tries: int) -> int:
    low, high = bounds
    for _ in range(tries):
        port = ports.choose(low, high)
        if port not in taken and ports.is_free(host, port):
            return port
    raise ConfigError(
        f"no free port between {low} and {high} on {host} in {tries} tries; "
        "widen it with ++port_range_low=<port> ++port_range_high=<port>"
    )


def _host(view: Tree) -> str:
    if not view.get("use_absolute_ip"):
        return str(view.get("default_host") or DEFAULT_HOST)
    name = socket.gethostname()
    try:
        return socket.gethostbyname(name)
    except OSError:
        raise ConfigError(
            f"use_absolute_ip: this machine's own name {name} has no address; add ++default_host=<address> instead"
        ) from None


def _port(view: Tree, key: str, default: int) -> int:
    value = view.get(key)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value <= _HIGHEST_PORT:
        raise ConfigError(f"`{key}` is no port; write ++{key}=<number from 1 to {_HIGHEST_PORT}>")
    return value


def _disallowed(view: Tree) -> set[int]:
    ports = view.get("disallowed_ports")
    if ports is None:
        return set()
    if not isinstance(ports, list) or not all(isinstance(port, int) for port in ports):
        raise ConfigError("`disallowed_ports` is no list of ports; write ++disallowed_ports=[8000,8001]")
    return set(ports)
