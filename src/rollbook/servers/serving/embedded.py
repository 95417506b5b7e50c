"""All servers as applications of this process: no child, no port, the same code.

Rules:
* A server that needs an environment of its own runs in a child process; the others listen for it from then on.
* Servers are loaded, built and started in the configuration's order, and closed in the reverse one.
* A component that cannot be loaded, built or started in time is an error that names its instance; nothing is left
  running, an interrupted start included.
* What was loaded stays until the end: the garbage collector does not look at it again, and at the rest less often.
* A request to a relay goes to the server behind it at once, where both are here and the relay has no time to watch.
* An instance keeps its `http://host:port`; the port is bound when somebody outside asks for the URL.

Source: servers.md §2.3, §3.2.
"""

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import anyio.to_thread
from fastapi import FastAPI
from omegaconf import DictConfig

from rollbook.config.instances import require_server_instances
from rollbook.config.parser import set_global_config_dict
from rollbook.config.types import ServerInstanceConfig
from rollbook.errors import ServingError
from rollbook.records.exchange import Exchange, Reply, Upload
from rollbook.servers.base import SimpleServer
from rollbook.servers.client import ServerClient
from rollbook.servers.direct.direct_way import entrance_of
from rollbook.servers.http.addresses import AddressBook, port_key_of, top_level
from rollbook.servers.http.client_pool import (
    current_client_settings,
    global_aiohttp_client_exit,
    set_global_aiohttp_client,
)
from rollbook.servers.http.embedded_registry import EmbeddedServer, register_embedded, unregister_embedded
from rollbook.servers.http.time_limits import spinup_seconds
from rollbook.servers.serving.address import address_of
from rollbook.servers.serving.deployment import (
    CONNECT_GRACE_SECONDS,
    CONNECT_SECONDS,
    MAX_REPLY_BYTES,
    Children,
    Tell,
    post_once,
)
from rollbook.servers.serving.garbage import Looking, looking_as_before, looking_less
from rollbook.servers.serving.interpreters import interpreters
from rollbook.servers.serving.lifespan import Lifespan
from rollbook.servers.serving.loading import build_component
from rollbook.servers.serving.open_files import raise_open_file_limit
from rollbook.servers.serving.readiness import wait_for_model_endpoints
from rollbook.servers.serving.webserver import head_server_config, instance_config
from rollbook.servers.wire.poster import Poster

_LOG = logging.getLogger(__name__)
_HANDLER_THREADS: Final = 256
_LOGS: Final = Path("results") / "server_logs"


class EmbeddedDeployment:
    """Servers that run in this process and event loop.

    `connect_grace` and `connect_seconds` are those of `Poster`; they concern foreign servers. `max_reply_bytes` bounds
    every reply. Children's logs go to `log_dir`; `tell` is told what is installed for them.
    """

    def __init__(
        self,
        global_config_dict: DictConfig,
        *,
        connect_grace: float = CONNECT_GRACE_SECONDS,
        connect_seconds: float = CONNECT_SECONDS,
        max_reply_bytes: int = MAX_REPLY_BYTES,
        log_dir: Path = _LOGS,
        tell: Tell = _LOG.warning,
    ) -> None:
        self.global_config_dict = global_config_dict
        self.head_server_config = head_server_config(global_config_dict)
        self._poster = Poster(
            connect_seconds=connect_seconds, grace_seconds=connect_grace, max_reply_bytes=max_reply_bytes
        )
        self._addresses = AddressBook(global_config_dict)
        self._running: list[tuple[EmbeddedServer, Lifespan]] = []
        self._looking: Looking | None = None
        self._log_dir = log_dir
        self._tell = tell
        self._children: Children | None = None
        self._relayed: dict[str, Mapping[str, str]] = {}

    async def start(self) -> None:
        """Load, build and start every server.

        Raises:
            NoServerInstancesError: the configuration declares none.
            MissingPackageError: a server's packages are missing; names them and what to type.
            ConfigError, ServingError: one of them cannot be served; none is left running.

        """
        config = self.global_config_dict
        instances = require_server_instances(config)
        pythons = await interpreters(config, instances, self._tell)
        set_global_config_dict(config)
        raise_open_file_limit()
        set_global_aiohttp_client(top_level(config))
        self._poster.tcp_keepalive = current_client_settings().tcp_keepalive
        limiter = anyio.to_thread.current_default_thread_limiter()
        limiter.total_tokens = max(limiter.total_tokens, _HANDLER_THREADS)
        client = ServerClient(self.head_server_config, config)
        try:
            await self._start_children([one for one in instances if one.name in pythons], pythons)
            for instance in instances:
                if instance.name not in pythons:
                    await self._start(instance, client)
            await self._join_children()
            await wait_for_model_endpoints(config)
            self._looking = looking_less()
        except BaseException:
            await self.close()
            raise

    async def _start_children(self, instances: Sequence[ServerInstanceConfig], pythons: Mapping[str, Path]) -> None:
        """Start the servers that have an interpreter of their own; they come up while the others are built."""
        if not instances:
            return
        from rollbook.servers.serving.isolated_servers import IsolatedServers  # noqa: PLC0415  most runs have none

        self._children = children = IsolatedServers(self.global_config_dict, self._log_dir)
        children.start(instances, pythons)

    async def _join_children(self) -> None:
        """Let children reach the servers of this process, and wait until all of them answer."""
        if self._children is not None:
            for server, _ in self._running:
                server.open_port()
            await self._children.wait_until_up()

    async def _start(self, instance: ServerInstanceConfig, client: ServerClient) -> None:
        host, port = address_of(self.global_config_dict, instance)
        app = build_component(instance, lambda served: self._application(served, instance.name, client))
        lifespan = Lifespan(app, instance.name, to_start=spinup_seconds(self.global_config_dict))
        state = await lifespan.startup()
        try:
            server = register_embedded(
                host,
                port,
                entrance_of(app),
                name=instance.name,
                port_key=port_key_of(self.global_config_dict, instance.name),
                state=state,
            )
        except ServingError:
            await lifespan.shutdown()
            raise
        self._running.append((server, lifespan))
        _LOG.debug("%s is served at %s in this process", instance.name, server.base_url)

    def _application(self, server_class: type[SimpleServer], name: str, client: ServerClient) -> FastAPI:
        config = instance_config(server_class, self.global_config_dict, name)
        server = server_class(config=config, server_client=client)
        self._relayed[name] = {} if current_client_settings().limits_exchanges else server.relayed_paths()
        return server.build_app()

    def _behind(self, server: str, path: str) -> str:
        """Return the instance that answers a request to `server`: another of this process where that only relays."""
        behind = self._relayed.get(server, {}).get(path)
        return server if behind is None or behind not in self._relayed else behind

    async def close(self) -> None:
        """Stop every server, children first; running handlers get half a second, and what a server ends with one."""
        if self._children is not None:
            await self._children.close()
            self._children = None
        while self._running:
            server, lifespan = self._running.pop()
            unregister_embedded(server)
            try:
                await server.close()
            finally:
                await lifespan.shutdown()
        if self._looking is not None:
            looking_as_before(self._looking)
            self._looking = None
        await self._poster.aclose()
        await global_aiohttp_client_exit()

    async def send(self, server: str, path: str, body: bytes | Upload, exchange: Exchange | None = None) -> Reply:
        """POST a JSON body to a server, once; see `Deployment.send`."""
        if exchange is None or exchange.seconds is None:
            server = self._behind(server, path)
        gone = self._children.gone(server) if self._children is not None else None
        return await post_once(self._poster, self._addresses, server, path, body, exchange=exchange, gone=gone)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
