"""The clients of each event loop: a session that reuses connections, one that never does, and the wire client.

Rules:
* A session belongs to the loop that it was opened in, and is closed when the owner of that loop ends it, as
  `asyncio.run` does: an asynchronous generator lives as long as the sessions, and loops close those at their end.
* New settings leave the calls that are under way on their sessions.
* No cookie jar, and no proxy of the environment unless `global_aiohttp_trust_env` asks for it: what goes out is what
  the caller says.

Source: servers.md §4.1.
"""

import asyncio
import logging
import socket
from collections.abc import AsyncGenerator, Mapping
from contextlib import suppress
from weakref import WeakKeyDictionary, ref

from aiohttp import AddrInfoType, ClientSession, DummyCookieJar, TCPConnector
from pydantic import BaseModel

from rollbook.servers.http.client_settings import ClientSettings, read_client_settings
from rollbook.servers.http.socket_options import tune_socket
from rollbook.servers.http.time_limits import default_timeout
from rollbook.servers.http.wire_calls import WireCalls, wire_calls

_LOG = logging.getLogger(__name__)


class _Pools:
    """The sessions of one event loop; `earlier` are those that other settings opened before."""

    def __init__(self, settings: ClientSettings, earlier: "_Pools | None" = None) -> None:
        self.settings = settings
        self.loop = ref(asyncio.get_running_loop())
        self.reusing = _session(settings)
        self.wire = wire_calls(settings)
        self._earlier = earlier
        self._until_end = self._close_at_the_loops_end()
        with suppress(StopIteration):
            self._until_end.__anext__().send(None)

    async def close(self) -> None:
        await self._until_end.aclose()

    async def _close_at_the_loops_end(self) -> AsyncGenerator[None]:
        try:
            yield
        finally:
            await self.reusing.close()
            if self.wire is not None:
                await self.wire.close()
            if self._earlier is not None:
                await self._earlier.close()

    def abandon(self) -> None:
        self.reusing.detach()


class _Chosen:
    """The settings that sessions are opened with, and the sessions that were asked for last."""

    settings = ClientSettings()
    latest: "ref[_Pools] | None" = None


_pools: "WeakKeyDictionary[asyncio.AbstractEventLoop, _Pools]" = WeakKeyDictionary()


def choose_client_settings(config: Mapping[str, object]) -> ClientSettings:
    """Use the top level of `config` for clients opened from now on; return what it says.

    Raises:
        ConfigError: a knob of the client that is no number.

    """
    settings = read_client_settings(config)
    warn_about_capacity(config, settings)
    _Chosen.settings = settings
    return settings


def set_global_aiohttp_client(config: Mapping[str, object] | BaseModel) -> ClientSession:
    """Use the top level of `config` for this loop's client and for later ones; return the client.

    An object's fields are read as the keys of that name (`GlobalAIOHTTPAsyncClientConfig`).

    Raises:
        ConfigError: a knob of the client that is no number.

    """
    settings = choose_client_settings(config.model_dump() if isinstance(config, BaseModel) else config)
    pools = _of_running_loop()
    if pools.settings != settings:
        _pools[asyncio.get_running_loop()] = _Pools(settings, earlier=pools)
        _Chosen.latest = None
    return _of_running_loop().reusing


def get_global_aiohttp_client() -> ClientSession:
    """Return this loop's client."""
    return _of_running_loop().reusing


def current_wire_calls() -> WireCalls | None:
    """Return what carries this loop's calls of model endpoints; None when its client does that as well."""
    return _of_running_loop().wire


def current_client_settings() -> ClientSettings:
    """Return the settings that this loop's client has."""
    latest = None if _Chosen.latest is None else _Chosen.latest()
    if latest is not None and latest.loop() is asyncio.get_running_loop():
        return latest.settings
    return _of_running_loop().settings


async def global_aiohttp_client_exit() -> None:
    """Close this loop's client; the next request opens another."""
    pools = _pools.pop(asyncio.get_running_loop(), None)
    _Chosen.latest = None
    if pools is not None:
        await pools.close()


def is_global_aiohttp_client_request_debug_enabled() -> bool:
    """Whether requests that are tried again are logged with their bodies."""
    return _Chosen.settings.request_debug


def warn_about_capacity(config: Mapping[str, object], settings: ClientSettings) -> None:
    """Log a warning where the pool is smaller than the concurrency that the configuration intends."""
    for suffix, limit in (("", settings.connector_limit), ("_per_host", settings.connector_limit_per_host)):
        intended = config.get(f"global_aiohttp_intended_concurrency{suffix}")
        if isinstance(intended, int) and 0 < limit < intended:
            _LOG.warning(
                "global_aiohttp_connector_limit%s gives %d connections, below the intended concurrency of %d; raise it",
                suffix,
                limit,
                intended,
            )


def _of_running_loop() -> _Pools:
    loop = asyncio.get_running_loop()
    latest = None if _Chosen.latest is None else _Chosen.latest()
    if latest is not None and latest.loop() is loop:
        return latest
    pools = _pools.get(loop)
    if pools is None:
        for ended in [other for other in _pools if other.is_closed()]:
            _pools.pop(ended).abandon()
        pools = _pools[loop] = _Pools(_Chosen.settings)
    _Chosen.latest = ref(pools)
    return pools


def _session(settings: ClientSettings) -> ClientSession:
    def probed(info: AddrInfoType) -> socket.socket:
        family, kind, proto, _, _ = info
        opened = socket.socket(family, kind, proto)
        tune_socket(opened, settings.tcp_keepalive)
        return opened

    connector = TCPConnector(
        limit=settings.connector_limit,
        limit_per_host=settings.connector_limit_per_host,
        socket_factory=probed,
        keepalive_timeout=settings.pool_keepalive_seconds,
    )
    return ClientSession(
        connector=connector,
        timeout=default_timeout(settings),
        cookie_jar=DummyCookieJar(),
        trust_env=settings.trust_env,
    )
