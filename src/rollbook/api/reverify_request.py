"""What judging again is asked, what it answers, and how its servers are reached.

Rules:
* Requests are driven as those of a collection: its settings stand for what the two have in common.
* Whether a server may judge without its episode is its own word; one that cannot be asked has not said so.

Source: collection.md §9.1, §10.5; servers.md §3.7.
"""

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from aiohttp import ClientError
from omegaconf import DictConfig

from rollbook.api.request import EvaluationRequest, ServeMode, deployment_for
from rollbook.config.attempt_cap import max_rollout_attempts
from rollbook.config.collection import RolloutCollectionConfig
from rollbook.config.missing import resolved
from rollbook.config.reverification import RolloutReverificationConfig
from rollbook.dispatch.policy import Limits, Policy
from rollbook.errors import ConfigError, OutputExistsError, RollbookError, UnroutedRunError
from rollbook.ledger.paths import RunPaths
from rollbook.records.event import Observe, observe_nothing
from rollbook.records.reverify_report import ReverifyReport
from rollbook.recovery.fingerprint import fingerprints
from rollbook.servers.client import ServerClient, get_response_json
from rollbook.servers.serving.deployment import Deployment

UNSAFE: Final = "unsafe_"
_STATELESS: Final = "stateless"
_LANES: Final = 64
"""Judgings in flight where no concurrency is set."""
_OK: Final = 200
_SHARED: Final = (
    "output_jsonl_fpath",
    "overwrite",
    "resume_from_cache",
    "retry_for_s",
    "rollout_connect_timeout_s",
    "dispatch_connect_grace_s",
    "max_reply_bytes",
    "durability",
    "take_over",
    "num_samples_in_parallel",
    "retry_terminal_timeouts",
    "route_failures_to_sidecar",
)


@dataclass(frozen=True, slots=True)
class ReverificationRequest:
    """What to judge again; `global_config`, `serve` and `observe` as for an evaluation."""

    settings: RolloutReverificationConfig
    global_config: DictConfig
    serve: ServeMode = ServeMode.EMBEDDED
    observe: Observe = observe_nothing
    log_dir: Path | None = None
    command: tuple[str, ...] = ()

    @property
    def collection(self) -> RolloutCollectionConfig:
        """The settings of a collection that would drive its requests alike."""
        shared = {name: getattr(self.settings, name) for name in _SHARED}
        return RolloutCollectionConfig.model_validate(
            {**shared, "input_jsonl_fpath": self.settings.materialized_inputs_jsonl_fpath}
        )

    @property
    def policy(self) -> Policy:
        """How requests are driven."""
        settings = self.settings
        return Policy(
            lanes=settings.num_samples_in_parallel or _LANES,
            route_failures=settings.route_failures_to_sidecar,
            grace=settings.interrupt_grace_s,
            retry_for=settings.retry_for_s,
            limits=Limits(rollout=settings.rollout_timeout_s),
        )

    @property
    def deployment(self) -> Deployment:
        """What answers, not started yet."""
        return deployment_for(
            EvaluationRequest(self.collection, self.global_config, self.serve, self.observe, log_dir=self.log_dir)
        )


ReverificationResult = ReverifyReport


async def modes_of(deployment: Deployment, servers: Iterable[str]) -> dict[str, str]:
    """Return what each server says of judging without its episode; `unknown` where it does not say."""
    client = ServerClient(deployment.head_server_config, deployment.global_config_dict)
    return {server: await _mode(client, server) for server in servers}


async def _mode(client: ServerClient, server: str) -> str:
    try:
        reply = await client.get(server, "/reverify_mode")
        said = await get_response_json(reply) if reply.status == _OK else None
    except (ClientError, OSError, RollbookError, json.JSONDecodeError):
        return "unknown"
    return said if isinstance(said, str) else "unknown"


def unsafe_servers(modes: Mapping[str, str], *, force: bool) -> str | None:
    """Return which servers may not judge without their episodes, None where all may.

    Raises:
        ConfigError: some may not, and nothing forces them.

    """
    unsafe = ", ".join(f"{server} ({mode})" for server, mode in sorted(modes.items()) if mode != _STATELESS)
    if not unsafe:
        return None
    if not force:
        raise ConfigError(
            f"not every resources server judges saved answers without their episode: {unsafe}. A reward that depends "
            "on what happened in an episode would come out wrong. To have them judged all the same, add --force "
            f"(++force=true): the output's name then begins with {UNSAFE}"
        )
    return unsafe


def unsafe_output(output: str) -> str:
    """Return where rewards go that nobody vouches for."""
    path = Path(output)
    return str(path if path.name.startswith(UNSAFE) else path.with_name(f"{UNSAFE}{path.name}"))


def refuse_existing(paths: RunPaths) -> None:
    """Refuse an output that holds something.

    Raises:
        ConfigError: it does; names the file and what to type.

    """
    found = [path for path in (paths.output, paths.failures) if path.exists() and path.stat().st_size]
    found += [path for path in paths.existing() if path not in found]
    if found:
        raise OutputHeldError(
            f"{found[0]} exists already. Replace it with --overwrite, go on with it with --resume, or give another "
            "--output"
        )


class OutputHeldError(ConfigError, OutputExistsError):
    """An output of judging again that holds something; also a `ConfigError`, as the field has it."""


def verifier_keys(config: DictConfig, servers: Iterable[str]) -> dict[str, str]:
    """Return one digest a dotted key for everything that rewards by `servers` depend on."""
    return fingerprints({}, resolved(config), (), servers)


def cap_of_new_runs() -> int:
    """Return how many failures a rollout of a run that starts now may have."""
    return max_rollout_attempts(os.environ)


@contextmanager
def judging_told() -> Iterator[None]:
    """Turn a failed `/run` of the block, in which nothing but judgings is sent, into what it was.

    Raises:
        UnroutedRunError: a judging failed, and failures are not routed; says what to do.

    """
    try:
        yield
    except UnroutedRunError as error:
        told = str(error).partition(". The run ends")[0].replace("/run of", "/verify of", 1)
        raise UnroutedRunError(
            f"{told}. What was judged is on disk; go on with --resume, or have failures saved and the rest judged with "
            "--route-failures"
        ) from error
