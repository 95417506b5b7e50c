"""The servers that live in this process: each has its `http://host:port`, answered without a socket.

Rules:
* A call from the server's own event loop runs the application; any other caller goes through the port.
* The port is bound when its URL is handed out, and not before: most runs open none at all.
* One address, one server: registering it twice is an error, and so is a port that another program holds.

Source: servers.md §2.1, §4.2.
"""

import asyncio
import errno
import logging
import socket
import threading
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, Protocol

from starlette.types import ASGIApp

from rollbook.errors import PortTakenError, ServingError
from rollbook.servers.http.embedded_call import EmbeddedRequest, Watch, call_embedded, request_scope
from rollbook.servers.http.embedded_response import EmbeddedResponse

_LOG = logging.getLogger(__name__)
_BACKLOG: Final = 2048
_GRACE_SECONDS: Final = 0.5
_HOST_AT: Final = len("http://")
_MOST_ELSEWHERE: Final = 256
_PORT_OF_HTTP: Final = ":80"
_LOOPBACK_NAMES: Final = {"localhost": "127.0.0.1", "[::1]": "127.0.0.1"}


def bound_socket(host: str, port: int, *, name: str, port_key: str) -> socket.socket:
    """Return a socket that listens on `host:port`.

    Raises:
        PortTakenError: another program holds the port; names it and the configuration key to change.
        ServingError: the address is none of this machine's, or may not be used.

    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        bound = socket.create_server((host, port), family=family, backlog=_BACKLOG)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise PortTakenError(
                f"port {port} on {host}, which {name!r} is to listen on, is held by another program; "
                f"stop that program, or give another port: ++{port_key}=<port>"
            ) from error
        raise ServingError(f"{name!r} cannot listen on {host}:{port}: {error.strerror}; see {port_key}") from error
    bound.settimeout(0)
    return bound


class _Listening(Protocol):
    def start(self) -> None: ...
    async def close(self) -> None: ...


@dataclass(eq=False)
class EmbeddedServer:
    """One application with an address. `state` is what its lifespan left for its requests."""

    host: str
    port: int
    app: ASGIApp
    name: str
    port_key: str
    state: Mapping[str, object] = field(default_factory=dict)
    loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.get_running_loop)
    running: set["asyncio.Task[None]"] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _listener: _Listening | None = None

    @cached_property
    def base_url(self) -> str:
        """The server's address."""
        return f"http://{self.host}:{self.port}"

    @property
    def is_open(self) -> bool:
        """Whether the port is bound."""
        return self._listener is not None

    def call(
        self, request: EmbeddedRequest, silence: float | None = None, watch: Watch | None = None
    ) -> Coroutine[object, object, EmbeddedResponse]:
        """Answer `request` in this process; see `call_embedded`."""
        scope = request_scope(request, self.host, self.port, self.state)
        return call_embedded(self.app, scope, request, self.running, silence, watch=watch)

    def open_port(self) -> None:
        """Bind and listen now, and serve from the server's own loop; once open, nothing happens.

        Raises:
            PortTakenError: another program holds the port.

        """
        from rollbook.servers.http.listening import Listener  # noqa: PLC0415  rare, and slow to import

        with self._lock:
            if self._listener is not None:
                return
            bound = bound_socket(self.host, self.port, name=self.name, port_key=self.port_key)
            self._listener = Listener(self.app, bound, dict(self.state))
        self.loop.call_soon_threadsafe(self._listener.start)
        _LOG.info("%s is open on %s", self.name, self.base_url)

    async def close(self) -> None:
        """Close the port, and give running handlers half a second before they are cancelled.

        Handlers that begin meanwhile are among them; those that begin while others are cancelled have no grace. None is
        cancelled twice, which would interrupt its own ending.
        """
        if self._listener is not None:
            await self._listener.close()
        await self._handlers_end(lambda _: None)
        cancelled: set[asyncio.Task[None]] = set()

        def cancel_once(running: set["asyncio.Task[None]"]) -> None:
            for task in running - cancelled:
                task.cancel()
            cancelled.update(running)

        await self._handlers_end(cancel_once)
        cancel_once(set(self.running))

    async def _handlers_end(self, look: Callable[[set["asyncio.Task[None]"]], None]) -> None:
        """Wait for handlers to end, also those that begin meanwhile, no longer than the grace; `look` sees them all."""
        clock = asyncio.get_running_loop().time
        deadline = clock() + _GRACE_SECONDS
        while self.running and (left := deadline - clock()) > 0:
            look(running := set(self.running))
            await asyncio.wait(running, timeout=left, return_when=asyncio.FIRST_COMPLETED)


_servers: dict[str, EmbeddedServer] = {}
_origins: dict[str, EmbeddedServer] = {}
"""The servers by `http://host:port` as callers have written it: an address is taken apart once."""
_elsewhere: set[str] = set()
"""The same of addresses that no server of this process has."""


def register_embedded(
    host: str,
    port: int,
    app: ASGIApp,
    *,
    name: str = "server",
    port_key: str = "port",
    state: Mapping[str, object] | None = None,
) -> EmbeddedServer:
    """Answer `http://host:port` with `app` from now on, in the running event loop.

    Raises:
        PortTakenError: another server of this process has the address.

    """
    key = _key(host, port)
    other = _alive(key)
    if other is not None:
        raise PortTakenError(
            f"{name!r} and {other.name!r} of this process both have the address {key}; "
            f"give one of them another port: ++{port_key}=<port>"
        )
    server = EmbeddedServer(host, port, app, name, port_key, state or {})
    _servers[key] = server
    _elsewhere.clear()
    return server


def unregister_embedded(server: EmbeddedServer) -> None:
    """Forget `server`; a server that is not registered is no error."""
    key = _key(server.host, server.port)
    if _servers.get(key) is server:
        _forget(key)


def hosts_servers() -> bool:
    """Whether any server lives in this process."""
    return any(_alive(key) is not None for key in list(_servers))


def find_embedded(url: str) -> EmbeddedServer | None:
    """Return the server of this process that `url` addresses, or None."""
    if not _servers:
        return None
    slash = url.find("/", _HOST_AT)
    origin = url if slash < 0 else url[:slash]
    if origin in _elsewhere:
        return None
    server = _origins.get(origin)
    if server is None or server.loop.is_closed():
        server = _looked_up(origin)
        if server is not None and "?" not in origin:
            _origins[origin] = server
        elif server is None and len(_elsewhere) < _MOST_ELSEWHERE:
            _elsewhere.add(origin)
    return server


def _looked_up(url: str) -> EmbeddedServer | None:
    scheme, _, rest = url.partition("://")
    if scheme != "http":
        return None
    authority = rest.partition("/")[0].partition("?")[0]
    if not authority.rpartition(":")[2].isdigit():
        authority += _PORT_OF_HTTP
    return _alive(authority) or _alive(_loopback(authority))


def hand_out(url: str) -> str:
    """Return `url` for use outside of this module's reach; the port behind it is open from now on.

    Raises:
        PortTakenError: it addresses an embedded server whose port another program holds.

    """
    server = find_embedded(url)
    if server is not None:
        server.open_port()
    return url


def _alive(key: str) -> EmbeddedServer | None:
    """Return the server at `key`; one whose event loop has ended is forgotten."""
    server = _servers.get(key)
    if server is None or not server.loop.is_closed():
        return server
    _forget(key)
    return None


def _forget(key: str) -> None:
    del _servers[key]
    _origins.clear()


def _key(host: str, port: int) -> str:
    return f"{_LOOPBACK_NAMES.get(host, host)}:{port}"


def _loopback(authority: str) -> str:
    host, _, port = authority.rpartition(":")
    return f"{_LOOPBACK_NAMES.get(host, host)}:{port}"
