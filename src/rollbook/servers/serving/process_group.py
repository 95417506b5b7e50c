"""Servers that run as processes of this one: started together, waited for, watched and stopped.

Rules:
* A server that ends while others start is reported with the end of its log.
* One that ends on its own later is told once, by whichever looks first.
* Stopping is orderly: an interrupt to each process group, a second of grace, then the end of whoever is left.
* Nobody is signalled but who was started here.

Source: servers.md §2.3.
"""

import asyncio
import logging
import signal
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from omegaconf import DictConfig, OmegaConf

from rollbook.config.types import ServerInstanceConfig
from rollbook.errors import ServingError
from rollbook.servers.client import ServerStatus, probe
from rollbook.servers.http.addresses import AddressBook
from rollbook.servers.http.time_limits import SPINUP_KEY, spinup_seconds
from rollbook.servers.http.waiting import until
from rollbook.servers.serving.child_process import LauncherPipe, ServerProcess

_LOG = logging.getLogger(__name__)
_STOP_SECONDS: Final = 1.0
_POLL_SECONDS: Final = 0.05
_SLOWEST_POLL_SECONDS: Final = 0.5
_WATCH_SECONDS: Final = 0.25
_PROBE_SECONDS: Final = 2.0
_PROGRESS_SECONDS: Final = 30.0


class ProcessGroup:
    """Processes that serve instances of one configuration. Logs go to `<log_dir>/<instance>.log`."""

    def __init__(self, global_config_dict: DictConfig, log_dir: Path) -> None:
        self.log_dir = log_dir
        self._config = global_config_dict
        self._addresses = AddressBook(global_config_dict)
        self._pipe: LauncherPipe | None = None
        self._processes: dict[str, ServerProcess] = {}
        self._told: set[str] = set()

    @property
    def processes(self) -> Sequence[ServerProcess]:
        """The servers' processes, in the order in which they were started."""
        return tuple(self._processes.values())

    def spawn(self, instances: Sequence[ServerInstanceConfig], pythons: Mapping[str, Path]) -> None:
        """Start `instances`, each under its interpreter in `pythons`, or else the one that runs us.

        Raises:
            ServingError: a server cannot be started, or no logs can be written.

        """
        try:
            self.log_dir.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ServingError(
                f"no logs can be written to {self.log_dir} ({error.strerror}); give another folder: "
                "++nemo_gym_log_dir=<folder>"
            ) from error
        self._pipe = LauncherPipe.open()
        text = OmegaConf.to_yaml(self._config, resolve=True)
        for instance in instances:
            self._processes[instance.name] = ServerProcess.spawn(
                instance, text, self.log_dir, self._pipe, pythons.get(instance.name)
            )

    async def wait_until_all_are_up(self) -> None:
        """Return when every server answers.

        Raises:
            ServerDiedError: a server ended while it was starting.
            ServingError: a server did not answer in time.

        """
        waits = [asyncio.ensure_future(self._wait_until_up(process)) for process in self.processes]
        try:
            await asyncio.gather(*waits)
        finally:
            for wait in waits:
                wait.cancel()
            if waits:
                await asyncio.wait(waits)

    async def _wait_until_up(self, process: ServerProcess) -> None:
        loop = asyncio.get_running_loop()
        started = loop.time()
        limit = spinup_seconds(self._config)
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

    def gone(self, server: str) -> Callable[[], bool]:
        """Return what tells whether the process of `server` has ended, or never was."""
        process = self._processes.get(server)
        return lambda: process is None or process.exit_code is not None

    def serves(self, server: str) -> bool:
        """Whether `server` is one of these."""
        return server in self._processes

    async def watch(self) -> None:
        """Return when the group is closed.

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
                self._told.add(process.name)
                raise process.death("on its own")

    def tell_ended(self, tell: Callable[[str], None]) -> None:
        """Tell of every server that had come up and has ended on its own, unless that was told before."""
        for process in self.processes:
            if process.exit_code is not None and process.name not in self._told:
                self._told.add(process.name)
                tell(str(process.ended("on its own")))

    async def close(self) -> None:
        """Stop every server, and what they started."""
        processes, self._processes = self.processes, {}
        await stop_processes(processes)
        if self._pipe is not None:
            self._pipe.close()
            self._pipe = None


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
