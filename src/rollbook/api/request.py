"""What an evaluation is asked, and what it answers.

Rules:
* How servers are reached is chosen here; everything after that sees one `Deployment`.
* Only the chosen way is imported: what serves is slow to import, and a run that others serve needs none of it.
"""

import logging
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path

import msgspec
from omegaconf import DictConfig, OmegaConf

from rollbook.api.preparation import SplitPreparation
from rollbook.config.collection import RolloutCollectionConfig
from rollbook.config.roots import resolve_read_path
from rollbook.config.types import BaseServerConfig
from rollbook.records.event import ConcurrencyChanged, Observe, RunNoted, observe_nothing
from rollbook.records.json_values import JsonObject
from rollbook.records.standing import Coverage
from rollbook.scoring.tally import RunScores
from rollbook.servers.serving.deployment import Deployment, Tell, hosts_servers
from rollbook.telemetry.pace import Pace
from rollbook.telemetry.sink import Sink

_LOG = logging.getLogger(__name__)


class ServeMode(StrEnum):
    """Who runs the servers: this process, processes of their own, or somebody else."""

    EMBEDDED = "embedded"
    PROCESSES = "processes"
    NONE = "none"


class EvaluationRequest(msgspec.Struct, frozen=True):
    """What to evaluate. `global_config` is the resolved configuration; of one served by others, it names the head.

    `observe` is told what happens, `sink` what is counted meanwhile. `preparation` makes the rows that the settings
    name as their input.
    """

    settings: RolloutCollectionConfig
    global_config: DictConfig
    serve: ServeMode = ServeMode.EMBEDDED
    observe: Observe = observe_nothing
    log_dir: Path | None = None
    command: tuple[str, ...] = ()
    sink: Sink | None = None
    preparation: SplitPreparation | None = None


class EvaluationResult(msgspec.Struct, frozen=True):
    """What came of it: scores and what they cover, the servers' own metrics, and where the files are.

    `stopped` says why the run ended before its plan did, if it did; `damaged` that it went on over damage of its files
    which is there still. `pace` says how fast the session went, `concurrency` how many rollouts it let be in flight,
    `loop_lag` what the event loop's lag was meanwhile (p99, in seconds). `run_id` is None where nothing was planned.
    """

    scores: RunScores
    coverage: Coverage
    files: Mapping[str, Path]
    metrics: tuple[JsonObject, ...] = ()
    notes: tuple[str, ...] = ()
    stopped: str | None = None
    damaged: bool = False
    pace: Pace = msgspec.field(default_factory=Pace)
    concurrency: tuple[ConcurrencyChanged, ...] = ()
    loop_lag: float | None = None
    run_id: str | None = None


def deployment_for(request: EvaluationRequest) -> Deployment:
    """Return what answers the run's requests."""
    config, settings = _with_absolute_input(request), request.settings
    grace, seconds = _connect_grace(settings), settings.rollout_connect_timeout_s
    most = settings.max_reply_bytes
    logs = request.log_dir or _logs_beside(settings)
    match request.serve:
        case ServeMode.EMBEDDED:
            from rollbook.servers.serving.embedded import EmbeddedDeployment  # noqa: PLC0415  see the rules

            return EmbeddedDeployment(
                config,
                connect_grace=grace,
                connect_seconds=seconds,
                max_reply_bytes=most,
                log_dir=logs,
                tell=_telling(request),
            )
        case ServeMode.PROCESSES:
            from rollbook.servers.serving.processes import ProcessDeployment  # noqa: PLC0415  the same

            return ProcessDeployment(
                config,
                logs,
                connect_grace=grace,
                connect_seconds=seconds,
                max_reply_bytes=most,
                tell=_telling(request),
            )
        case ServeMode.NONE:
            from rollbook.servers.serving.remote import RemoteDeployment  # noqa: PLC0415  the same

            head = BaseServerConfig.model_validate(OmegaConf.to_container(config.head_server, resolve=True))
            known = request.global_config if hosts_servers() else None
            return RemoteDeployment(
                head, connect_grace=grace, connect_seconds=seconds, max_reply_bytes=most, known=known
            )


def _telling(request: EvaluationRequest) -> Tell:
    """Return what tells whoever looks on, or else the log, one line."""
    observe = request.observe
    return _LOG.warning if observe is observe_nothing else lambda text: observe(RunNoted(text))


def _connect_grace(settings: RolloutCollectionConfig) -> float:
    """Return the seconds that connecting may take in all: what was asked for, else no longer than trying again may."""
    grace = settings.dispatch_connect_grace_s
    asked_for = "dispatch_connect_grace_s" in settings.model_fields_set
    return grace if asked_for else min(grace, settings.retry_for_s)


def _with_absolute_input(request: EvaluationRequest) -> DictConfig:
    """Return the configuration with the rows' file named so that a server in any folder finds it."""
    rows = resolve_read_path(request.settings.input_jsonl_fpath)
    config = request.global_config.copy()
    if rows.is_file():
        config["input_jsonl_fpath"] = str(rows.resolve())
    return config


def _logs_beside(settings: RolloutCollectionConfig) -> Path:
    output = Path(settings.output_jsonl_fpath)
    return output.with_name(f"{output.stem}_logs")
