"""One process for each server, and a head server in this one.

Rules:
* Nothing starts before every port is known to be free.
* A server that ends while others start ends them all.
* One that ended on its own since is told when the deployment is closed, unless `check` told it before.

Source: servers.md §2.1, §2.3.
"""

import asyncio
import logging
import socket
from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from omegaconf import DictConfig

from rollbook.config.instances import require_server_instances
from rollbook.config.types import ServerInstanceConfig
from rollbook.records.exchange import Exchange, Reply, Upload
from rollbook.servers.http.addresses import AddressBook, port_key_of, top_level
from rollbook.servers.http.client_pool import (
    current_client_settings,
    global_aiohttp_client_exit,
    set_global_aiohttp_client,
)
from rollbook.servers.http.embedded_registry import bound_socket
from rollbook.servers.http.listening import Listener
from rollbook.servers.serving.address import address_of
from rollbook.servers.serving.child_process import ServerProcess
from rollbook.servers.serving.deployment import (
    CONNECT_GRACE_SECONDS,
    CONNECT_SECONDS,
    MAX_REPLY_BYTES,
    Tell,
    post_once,
)
from rollbook.servers.serving.head import head_app
from rollbook.servers.serving.interpreters import interpreters
from rollbook.servers.serving.open_files import raise_open_file_limit
from rollbook.servers.serving.process_group import ProcessGroup
from rollbook.servers.serving.readiness import wait_for_model_endpoints
from rollbook.servers.serving.status import InstanceStatus
from rollbook.servers.serving.webserver import head_server_config
from rollbook.servers.wire.poster import Poster

_LOG = logging.getLogger(__name__)


class ProcessDeployment:
    """Servers that run as processes on this machine. Logs go to `<log_dir>/<instance>.log`.

    `connect_grace`, `connect_seconds` and `max_reply_bytes` are those of `Poster`. `on_spawned` is told the processes
    as soon as they exist, before they answer; `tell` what is installed for them, and who of them ended on its own.
    """

    def __init__(
        self,
        global_config_dict: DictConfig,
        log_dir: Path,
        *,
        connect_grace: float = CONNECT_GRACE_SECONDS,
        connect_seconds: float = CONNECT_SECONDS,
        max_reply_bytes: int = MAX_REPLY_BYTES,
        on_spawned: Callable[[Sequence[ServerProcess]], None] | None = None,
        tell: Tell = _LOG.warning,
    ) -> None:
        self.global_config_dict = global_config_dict
        self.head_server_config = head_server_config(global_config_dict)
        self.log_dir = log_dir
        self.ready = False
        self._poster = Poster(
            connect_seconds=connect_seconds, grace_seconds=connect_grace, max_reply_bytes=max_reply_bytes
        )
        self._on_spawned = on_spawned
        self._tell = tell
        self._addresses = AddressBook(global_config_dict)
        self._group = ProcessGroup(global_config_dict, log_dir)
        self._head: Listener | None = None

    @property
    def processes(self) -> Sequence[ServerProcess]:
        """The servers' processes, in the configuration's order."""
        return self._group.processes

    @property
    def log_files(self) -> Mapping[str, Path]:
        """Where each server's output goes."""
        return {process.name: process.log_file for process in self.processes}

    @property
    def instances(self) -> tuple[InstanceStatus, ...]:
        """What `/server_instances` of the head server tells."""
        return tuple(_record(process) for process in self.processes)

    async def start(self) -> None:
        """Start the head server and every server, and wait until all answer.

        Raises:
            NoServerInstancesError: the configuration declares none.
            MissingPackageError: a server's packages are missing; names them and what to type.
            PortTakenError: a port is held by another program; nothing was started.
            ServerDiedError: a server ended while it was starting; names it and shows the end of its log.
            ServingError: a server did not answer in time, or cannot be started.

        """
        config = self.global_config_dict
        instances = require_server_instances(config)
        pythons = await interpreters(config, instances, self._tell)
        self._check_ports(instances)
        raise_open_file_limit()
        set_global_aiohttp_client(top_level(config))
        self._poster.tcp_keepalive = current_client_settings().tcp_keepalive
        try:
            self._head = Listener(head_app(config, lambda: self.ready, lambda: self.instances), self._head_socket())
            self._head.start()
            self._group.spawn(instances, pythons)
            if self._on_spawned is not None:
                self._on_spawned(self.processes)
            await self._group.wait_until_all_are_up()
            await self._or_death(wait_for_model_endpoints(config))
        except BaseException:
            await self.close()
            raise
        self.ready = True

    def _head_socket(self) -> socket.socket:
        head = self.head_server_config
        return bound_socket(head.host, head.port, name="the head server", port_key="head_server.port")

    def _check_ports(self, instances: Sequence[ServerInstanceConfig]) -> None:
        """Bind every port once, all together, and let them go."""
        bound = [self._head_socket()]
        try:
            for instance in instances:
                host, port = address_of(self.global_config_dict, instance)
                key = port_key_of(self.global_config_dict, instance.name)
                bound.append(bound_socket(host, port, name=instance.name, port_key=key))
        finally:
            for held in bound:
                held.close()

    async def _or_death(self, waiting: Coroutine[object, None, None]) -> None:
        """Wait for `waiting`, unless a server ends before."""
        tasks = {asyncio.ensure_future(waiting), asyncio.ensure_future(self.watch())}
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
        for first in done:
            first.result()

    async def watch(self) -> None:
        """Return when the deployment is closed.

        Raises:
            ServerDiedError: a server ended on its own; names it and shows the end of its log.

        """
        await self._group.watch()

    def check(self) -> None:
        """Raise `ServerDiedError` if a server has ended on its own."""
        self._group.check()

    async def close(self) -> None:
        """Stop the head server and every server, and what they started."""
        if self.ready:
            self._group.tell_ended(self._tell)
        self.ready = False
        await self._group.close()
        if self._head is not None:
            await self._head.close()
            self._head = None
        await self._poster.aclose()
        await global_aiohttp_client_exit()

    async def send(self, server: str, path: str, body: bytes | Upload, exchange: Exchange | None = None) -> Reply:
        """POST a JSON body to a server, once; a server that has ended is not waited for. See `Deployment.send`."""
        gone = self._group.gone(server)
        return await post_once(self._poster, self._addresses, server, path, body, exchange=exchange, gone=gone)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


def _record(process: ServerProcess) -> InstanceStatus:
    instance = process.instance
    return InstanceStatus(
        config_path=instance.name,
        dir_path=str(instance.dir_path),
        entrypoint=instance.entrypoint,
        host=str(instance.host),
        name=instance.implementation,
        pid=process.pid,
        port=int(instance.port or 0),
        process_name=instance.name,
        server_type=instance.server_type,
        start_time=process.started_at,
        url=f"http://{instance.host}:{instance.port}",
    )
