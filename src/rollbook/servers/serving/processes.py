"""One process for each server, and a head server in this one.

Rules:
* Nothing starts before every port is known to be free.
* A server that ends while others start ends them all, and is reported with the end of its log.
* Stopping is orderly: an interrupt to each process group, a second of grace, then the end of whoever is left.

Source: servers.md §2.1, §2.3.
"""

import asyncio
import logging
import signal
import socket
from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from omegaconf import DictConfig, OmegaConf

from rollbook.config.instances import require_server_instances
from rollbook.config.types import ServerInstanceConfig
from rollbook.errors import ConfigError, ServingError
from rollbook.records.exchange import Exchange, Reply, Upload
from rollbook.servers.client import ServerStatus, probe
from rollbook.servers.http.addresses import AddressBook, port_key_of, top_level
from rollbook.servers.http.client_pool import (
    current_client_settings,
    global_aiohttp_client_exit,
    set_global_aiohttp_client,
)
from rollbook.servers.http.embedded_registry import bound_socket
from rollbook.servers.http.listening import Listener
from rollbook.servers.http.time_limits import SPINUP_KEY, spinup_seconds
from rollbook.servers.http.waiting import until
from rollbook.servers.serving.child_process import LauncherPipe, ServerProcess
from rollbook.servers.serving.deployment import (
    CONNECT_GRACE_SECONDS,
    CONNECT_SECONDS,
    MAX_REPLY_BYTES,
    post_once,
)
from rollbook.servers.serving.head import head_app
from rollbook.servers.serving.open_files import raise_open_file_limit
from rollbook.servers.serving.readiness import wait_for_model_endpoints
from rollbook.servers.serving.status import InstanceStatus
from rollbook.servers.serving.webserver import head_server_config
from rollbook.servers.wire.poster import Poster

_LOG = logging.getLogger(__name__)
_STOP_SECONDS: Final = 1.0
_POLL_SECONDS: Final = 0.05
_SLOWEST_POLL_SECONDS: Final = 0.5
_WATCH_SECONDS: Final = 0.25
_PROBE_SECONDS: Final = 2.0
_PROGRESS_SECONDS: Final = 30.0


class ProcessDeployment:
    """Servers that run as processes on this machine. Logs go to `<log_dir>/<instance>.log`.

    `connect_grace`, `connect_seconds` and `max_reply_bytes` are those of `Poster`. `on_spawned` is told the processes
    as soon as they exist, before they answer.
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
    ) -> None:
        self.global_config_dict = global_config_dict
        self.head_server_config = head_server_config(global_config_dict)
        self.log_dir = log_dir
        self.ready = False
        self._poster = Poster(
            connect_seconds=connect_seconds, grace_seconds=connect_grace, max_reply_bytes=max_reply_bytes
        )
        self._on_spawned = on_spawned
        self._addresses = AddressBook(global_config_dict)
        self._pipe: LauncherPipe | None = None
        self._head: Listener | None = None
        self._processes: dict[str, ServerProcess] = {}

    @property
    def processes(self) -> Sequence[ServerProcess]:
        """The servers' processes, in the configuration's order."""
        return tuple(self._processes.values())

    @property
    def log_files(self) -> Mapping[str, Path]:
        """Where each server's output goes."""
        return {process.name: process.log_file for process in self._processes.values()}

    @property
    def instances(self) -> tuple[InstanceStatus, ...]:
        """What `/server_instances` of the head server tells."""
        return tuple(_record(process) for process in self._processes.values())

    async def start(self) -> None:
        """Start the head server and every server, and wait until all answer.

        Raises:
            NoServerInstancesError: the configuration declares none.
            PortTakenError: a port is held by another program; nothing was started.
            ServerDiedError: a server ended while it was starting; names it and shows the end of its log.
            ServingError: a server did not answer in time, or cannot be started.

        """
        config = self.global_config_dict
        instances = require_server_instances(config)
        self._check_ports(instances)
        raise_open_file_limit()
        set_global_aiohttp_client(top_level(config))
        self._poster.tcp_keepalive = current_client_settings().tcp_keepalive
        try:
            self._head = Listener(head_app(config, lambda: self.ready, lambda: self.instances), self._head_socket())
            self._head.start()
            self._spawn(instances)
            await self._wait_until_all_are_up()
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
                key = port_key_of(self.global_config_dict, instance.name)
                if not instance.host or not instance.port or instance.port < 0:
                    raise ConfigError(f"server {instance.name!r} has no address; give it one: ++{key}=<port>")
                bound.append(bound_socket(instance.host, instance.port, name=instance.name, port_key=key))
        finally:
            for held in bound:
                held.close()

    def _spawn(self, instances: Sequence[ServerInstanceConfig]) -> None:
        try:
            self.log_dir.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ServingError(
                f"no logs can be written to {self.log_dir} ({error.strerror}); give another folder: "
                "++nemo_gym_log_dir=<folder>"
            ) from error
        self._pipe = LauncherPipe.open()
        text = OmegaConf.to_yaml(self.global_config_dict, resolve=True)
        for instance in instances:
            self._processes[instance.name] = ServerProcess.spawn(instance, text, self.log_dir, self._pipe)
        if self._on_spawned is not None:
            self._on_spawned(self.processes)

    async def _wait_until_all_are_up(self) -> None:
        waits = [asyncio.ensure_future(self._wait_until_up(process)) for process in self.processes]
        try:
            await asyncio.gather(*waits)
        finally:
            for wait in waits:
                wait.cancel()
            await asyncio.wait(waits)

    async def _wait_until_up(self, process: ServerProcess) -> None:
        loop = asyncio.get_running_loop()
        started = loop.time()
        limit = spinup_seconds(self.global_config_dict)
        pause, told = _POLL_SECONDS, 0
        url = self._addresses.base_url(process.name)
        while process.exit_code is None:
            if await probe(url, _PROBE_SECONDS) is ServerStatus.SUCCESS and process.exit_code is None:
                return
            waited = loop.time() - started
            if waited > limit:
                raise ServingError(
                    f"server {process.name!r} did not answer at {url} within {limit:g} s; see {process.log_file}, "
                    f"or allow more: ++{SPINUP_KEY}=<seconds>"
                )
            if waited // _PROGRESS_SECONDS > told:
                told = int(waited // _PROGRESS_SECONDS)
                _LOG.info("still waiting for %s at %s (%d s)", process.name, url, waited)
            await asyncio.sleep(pause)
            pause = min(pause * 1.2, _SLOWEST_POLL_SECONDS)
        raise process.death("while it was starting")

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
        while self._processes:
            self.check()
            await asyncio.sleep(_WATCH_SECONDS)

    def check(self) -> None:
        """Raise `ServerDiedError` if a server has ended on its own."""
        for process in self.processes:
            if process.exit_code is not None:
                raise process.death("on its own")

    async def close(self) -> None:
        """Stop the head server and every server, and what they started."""
        self.ready = False
        processes, self._processes = self.processes, {}
        await stop_processes(processes)
        if self._pipe is not None:
            self._pipe.close()
            self._pipe = None
        if self._head is not None:
            await self._head.close()
            self._head = None
        await self._poster.aclose()
        await global_aiohttp_client_exit()

    async def send(self, server: str, path: str, body: bytes | Upload, exchange: Exchange | None = None) -> Reply:
        """POST a JSON body to a server, once; a server that has ended is not waited for. See `Deployment.send`."""
        process = self._processes.get(server)

        def gone() -> bool:
            return process is None or process.exit_code is not None

        return await post_once(self._poster, self._addresses, server, path, body, exchange=exchange, gone=gone)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


async def stop_processes(processes: Sequence[ServerProcess], grace: float = _STOP_SECONDS) -> tuple[str, ...]:
    """Interrupt every process group, and kill what is left after `grace` seconds; return the names of those."""
    for process in processes:
        process.signal_group(signal.SIGINT)
    await until(lambda: all(process.exit_code is not None for process in processes), grace)
    killed = tuple(process.name for process in processes if process.exit_code is None)
    for process in processes:
        process.signal_group(signal.SIGKILL)
        process.reap()
    return killed


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
