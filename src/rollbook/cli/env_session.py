"""A deployment kept up, asked and stopped.

Rules:
* Where servers listen goes to standard output; what happens to them goes to standard error.
* An interrupt and SIGTERM end a deployment in order; that is how it ends, and the exit code is 0.

Source: servers.md §2.2, §2.3, §10.2.
"""

import asyncio
import contextlib
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from omegaconf import DictConfig

from rollbook.cli.configuration import resolved_configuration
from rollbook.cli.env_prefetch_session import show_interpreters
from rollbook.cli.event_loop import in_event_loop
from rollbook.cli.terminal import note, say, say_json
from rollbook.config.types import BaseServerConfig
from rollbook.report.shapes import VERSION
from rollbook.servers.serving.environment import RunningEnvironment, start_environment, stop_environment
from rollbook.servers.serving.status import InstanceStatus, probe_status

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def keep_environment_up(given: Mapping[str, Any], *, verbose: bool) -> None:
    """Start the configuration's servers and return once they were asked to end.

    Raises:
        ConfigError, ServingError: they cannot be started, or one of them died.

    """
    cfg = resolved_configuration(given, settings={}, verbose=verbose)
    if cfg.get("dry_run"):
        show_interpreters(cfg, as_json=False)
        return
    configured = cfg.get("nemo_gym_log_dir")
    log_dir = Path(str(configured)) if configured else Path(str(cfg.get("results_dir") or "results")) / "server_logs"
    in_event_loop(_kept_up(cfg, log_dir))


async def _kept_up(cfg: DictConfig, log_dir: Path) -> None:
    asked_to_end = _told_by_signals()
    starting = asyncio.ensure_future(start_environment(cfg, log_dir, tell=note))
    running = await _unless(asked_to_end, starting)
    if running is None:
        return
    try:
        _show_started(running, head_of(cfg))
        await _unless(asked_to_end, asyncio.ensure_future(running.wait_until_ended()))
    finally:
        await running.close()
        note("All servers are stopped.")


def _told_by_signals() -> asyncio.Event:
    asked_to_end = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in _SIGNALS:
        with contextlib.suppress(NotImplementedError):
            loop.add_signal_handler(number, asked_to_end.set)
    return asked_to_end


async def _unless(asked_to_end: asyncio.Event, work: "asyncio.Future[Any]") -> Any:
    """Return what `work` returns, or cancel it and return None once an end was asked for."""
    asked = asyncio.ensure_future(asked_to_end.wait())
    done, _ = await asyncio.wait({asked, work}, return_when=asyncio.FIRST_COMPLETED)
    asked.cancel()
    if work in done:
        return work.result()
    work.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        return await work
    return None


def _show_started(running: RunningEnvironment, head: BaseServerConfig) -> None:
    for instance in running.instances:
        say(f"{instance.process_name}  {instance.url}  ({instance.server_type}/{instance.name})")
    say(f"head  http://{head.host}:{head.port}")
    note("All servers are up. Stop them with Ctrl-C, or with `gym env stop` from elsewhere.")


def head_of(cfg: DictConfig) -> BaseServerConfig:
    """Return where the configuration's head server listens."""
    return BaseServerConfig.model_validate(dict(cfg["head_server"]))


def show_status(given: Mapping[str, Any], *, as_json: bool) -> int:
    """Print every server of the running deployment, and how many answer; return 0 when all do, else 1."""
    head = head_of(resolved_configuration(given, settings={}))
    found = in_event_loop(probe_status(head))
    if as_json:
        say_json([instance.as_json() for instance in found or ()])
    elif not found:
        say(f"No Rollbook servers found running (no head server answers at http://{head.host}:{head.port}).")
    else:
        _show_instances(found)
    return 0 if found and all(instance.healthy for instance in found) else 1


def _show_instances(found: tuple[InstanceStatus, ...]) -> None:
    for number, instance in enumerate(found, 1):
        mark = "✓" if instance.healthy else "✗"
        say(f"[{number}] {mark} {instance.process_name} ({instance.server_type}/{instance.name})")
        say(f"    {instance.url}  {instance.status}  pid {instance.pid}")
    healthy = sum(instance.healthy for instance in found)
    say(f"{len(found)} servers found ({healthy} healthy, {len(found) - healthy} unhealthy)")


def stop_started_environment(given: Mapping[str, Any], *, as_json: bool) -> None:
    """Stop what `gym env start` keeps up, and print which servers ended and which were killed."""
    head = head_of(resolved_configuration(given, settings={}))
    report = in_event_loop(stop_environment(head))
    stopped, killed = (report.stopped, report.killed) if report else ((), ())
    if as_json:
        say_json(VERSION | {"stopped": list(stopped), "killed": list(killed)})
    elif report is None:
        say(f"Nothing to stop: no deployment was started for http://{head.host}:{head.port}.")
    else:
        say(f"Stopped: {', '.join(stopped) or 'none'}.")
        if killed:
            say(f"Killed, as they did not end in time: {', '.join(killed)}.")
