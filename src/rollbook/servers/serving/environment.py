"""Starting an environment that stays, and ending it from anywhere.

Rules:
* What runs is written down as soon as it runs, and struck out when it ends.
* Ending asks the launcher first, which stops its servers in order; only what outlives it is signalled directly.

Source: servers.md §2.3, §10.2.
"""

import logging
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from omegaconf import DictConfig

from rollbook.config.types import BaseServerConfig
from rollbook.servers.http.waiting import until
from rollbook.servers.serving.child_process import ServerProcess, signal_group
from rollbook.servers.serving.deployment import Tell
from rollbook.servers.serving.processes import ProcessDeployment
from rollbook.servers.serving.state_file import KnownProcess, known_process, read_state, state_path, write_state
from rollbook.servers.serving.status import InstanceStatus
from rollbook.servers.serving.webserver import head_server_config

_LOG = logging.getLogger(__name__)
_KILL_SECONDS: Final = 2.0


@dataclass(frozen=True, slots=True)
class RunningEnvironment:
    """Servers that `start_environment` started."""

    deployment: ProcessDeployment
    state_file: Path

    @property
    def instances(self) -> tuple[InstanceStatus, ...]:
        """The servers, with their addresses."""
        return self.deployment.instances

    @property
    def log_files(self) -> Mapping[str, Path]:
        """Where each server's output goes."""
        return self.deployment.log_files

    async def wait_until_ended(self) -> None:
        """Return when the environment is closed.

        Raises:
            ServerDiedError: a server ended on its own; names it and shows the end of its log.

        """
        await self.deployment.watch()

    async def close(self) -> None:
        """Stop every server."""
        await self.deployment.close()
        self.state_file.unlink(missing_ok=True)


@dataclass(frozen=True, slots=True)
class StopReport:
    """What `stop_environment` ended: the launcher's id, its servers, and who of them had to be killed."""

    pid: int
    stopped: tuple[str, ...]
    killed: tuple[str, ...]


async def start_environment(
    config: DictConfig, log_dir: Path, *, state_dir: Path | None = None, tell: Tell = _LOG.warning
) -> RunningEnvironment:
    """Start every server of `config` as a process, and return when all are ready; see `ProcessDeployment.start`."""
    path = state_path(head_server_config(config), state_dir)
    written = False

    def write_down(processes: Sequence[ServerProcess]) -> None:
        nonlocal written
        servers = [known_process(process.name, process.pid) for process in processes]
        write_state(path, known_process("launcher", os.getpid()), servers)
        written = True

    running = RunningEnvironment(ProcessDeployment(config, log_dir, on_spawned=write_down, tell=tell), path)
    try:
        await running.deployment.start()
    except BaseException:
        if written:
            path.unlink(missing_ok=True)
        raise
    return running


async def stop_environment(
    head: BaseServerConfig, *, state_dir: Path | None = None, grace: float = 10.0
) -> StopReport | None:
    """End the environment behind `head`; None when none was started there, or it has ended already.

    Raises:
        ServingError: its state file cannot be read.

    """
    path = state_path(head, state_dir)
    state = read_state(path)
    if state is None:
        return None
    alive = [process for process in (state.launcher, *state.servers) if process.alive]
    if state.launcher in alive:
        os.kill(state.launcher.pid, signal.SIGINT)
        await until(_gone(alive), grace)
    killed = [process for process in alive if process.alive]
    for process in killed:
        if process == state.launcher:
            os.kill(process.pid, signal.SIGKILL)
        else:
            signal_group(process.pid, signal.SIGKILL)
    await until(_gone(killed), _KILL_SECONDS)
    path.unlink(missing_ok=True)
    names = tuple(process.name for process in state.servers if process in alive)
    return StopReport(state.launcher.pid, names, tuple(process.name for process in killed)) if alive else None


def _gone(processes: Sequence[KnownProcess]) -> Callable[[], bool]:
    return lambda: not any(process.alive for process in processes)
