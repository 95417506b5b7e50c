"""Settings as a person wrote them → the values that the rooms take.

Rules:
* Each setting is read here once; no room sees a settings model.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from rollbook.clock import Clock
from rollbook.config.collection import RolloutCollectionConfig
from rollbook.config.roots import resolve_read_path
from rollbook.dispatch.ceilings import MOST, Ceilings
from rollbook.dispatch.policy import Budget, Limits, Policy
from rollbook.errors import ConfigPathNotFoundError, InputError
from rollbook.inputs.jsonl import read_source_rows
from rollbook.inputs.prompts import PromptConfig, load_prompt_config
from rollbook.inputs.skills import load_skills
from rollbook.ledger.paths import RunPaths
from rollbook.ledger.run import Run
from rollbook.ledger.writer import Durability
from rollbook.plan.directory import Directory
from rollbook.plan.environment_routes import EnvironmentRoutes
from rollbook.plan.options import PlanOptions, RoutingMode
from rollbook.records.event import Observe
from rollbook.records.json_values import JsonObject
from rollbook.records.source import SourceRow
from rollbook.scoring.imputation import Counting

UNLIMITED_LANES: Final = 1024
"""Rollouts in flight where no concurrency is set: as many as one host is sent connections."""

_LOOK_AHEAD: Final = 256
"""Rollouts of servers without room that are passed over, where there are other servers."""


def sources_of(settings: RolloutCollectionConfig) -> Iterator[SourceRow]:
    """Yield the rows of the settings' dataset.

    Raises:
        ConfigPathNotFoundError: no such file under any search root.

    """
    path = resolve_read_path(settings.input_jsonl_fpath)
    if not path.is_file():
        raise ConfigPathNotFoundError(f"{path}: no such dataset; name one with --input")
    return read_source_rows(path)


def run_paths(settings: RolloutCollectionConfig) -> RunPaths:
    """Return the files of the settings' run; where the output is a link, beside the file that it leads to.

    A run that is gone on with may read its own plan, which it does not write anew: that is how a shard is resumed.

    Raises:
        InputError: what the run reads is a file that it would write.

    """
    output = Path(settings.output_jsonl_fpath)
    paths = RunPaths(output.resolve() if output.is_symlink() else output)
    written = {path.resolve() for path in paths.every_file}
    is_there = paths.manifest.exists() or paths.manifest_log.exists()
    if settings.resume_from_cache and not settings.overwrite and is_there:
        written.discard(paths.materialized_inputs.resolve())
    for flag, name in (("--input", settings.input_jsonl_fpath), ("--prompt-config", settings.prompt_config)):
        if name is not None and resolve_read_path(name).resolve() in written:
            raise InputError(f"{flag} {name} is a file that this run writes; give another --output, or copy the rows")
    return paths


def prompt_of(settings: RolloutCollectionConfig) -> PromptConfig | None:
    """Return the settings' prompt template, if they name one.

    Raises:
        ConfigPathNotFoundError: no such file under any search root.

    """
    if settings.prompt_config is None:
        return None
    path = resolve_read_path(settings.prompt_config)
    if not path.is_file():
        raise ConfigPathNotFoundError(f"{path}: no such prompt template; name one with --prompt-config")
    return load_prompt_config(path)


def _part(shard: str | None) -> tuple[int, int] | None:
    if shard is None:
        return None
    number, _, parts = shard.partition("/")
    return int(number), int(parts)


def plan_options(settings: RolloutCollectionConfig, directory: Directory) -> PlanOptions:
    """Return how the settings turn source rows into rollouts for the deployment that `directory` knows."""
    return PlanOptions(
        agent_map=settings.agent_map or {},
        fan_out={name: tuple(agents) for name, agents in (settings.fan_out or {}).items()},
        repeats=settings.num_repeats,
        add_seed=settings.num_repeats_add_seed,
        overrides=settings.responses_create_params,
        skills_ref=_skills_ref(settings),
        routing=RoutingMode(settings.environment_routing_mode),
        environment_server=settings.environment_server_name,
        environment_routes=settings.environment_server_routes,
        deployment_routes=EnvironmentRoutes(directory.config),
        limit=settings.limit,
        part=_part(settings.task_shard),
        task_ids=None if settings.task_ids is None else frozenset(settings.task_ids),
        only_agent=directory.only_agent,
    )


def policy_of(settings: RolloutCollectionConfig, *, several_servers: bool = False, whole_tasks: bool = False) -> Policy:
    """Return how the settings drive dispatch."""
    budget = settings.dispatch_budget_s
    return Policy(
        lanes=most_asked_for(settings) or UNLIMITED_LANES,
        route_failures=settings.route_failures_to_sidecar,
        grace=settings.interrupt_grace_s,
        retry_for=settings.retry_for_s,
        limits=Limits(
            rollout=settings.rollout_timeout_s,
            response=settings.rollout_response_timeout_s,
            body=settings.rollout_body_timeout_s,
        ),
        budget=None if budget is None else Budget(budget, settings.drain_margin_s),
        look_ahead=_LOOK_AHEAD if several_servers else 1,
        whole_tasks=whole_tasks,
    )


def told_limits(limits: Limits) -> str:
    """Return what a person is told, before anything is sent, of how long a rollout may take."""
    if limits.rollout is None:
        return "a rollout may take as long as it needs; --timeout S sets a limit"
    return f"a rollout may take {limits.rollout:g} s once its request is sent"


def ceilings_of(settings: RolloutCollectionConfig, observe: Observe, floor: int = 1) -> Ceilings:
    """Return how many rollouts the settings let be in flight; `floor` is the size of the largest group."""
    hard = most_asked_for(settings)
    auto = settings.adaptive_concurrency
    return Ceilings(hard if auto else hard or UNLIMITED_LANES, auto=auto, floor=floor, told=observe)


def most_at_once(settings: RolloutCollectionConfig) -> int:
    """Return how many rollouts the settings let be in flight at most."""
    return most_asked_for(settings) or (MOST if settings.adaptive_concurrency else UNLIMITED_LANES)


def most_asked_for(settings: RolloutCollectionConfig) -> int | None:
    """Return how many rollouts may be in flight at most by what was asked for; None where nothing was."""
    limits = (settings.num_samples_in_parallel, settings.max_resident_rollout_tasks)
    return min((limit for limit in limits if limit is not None), default=None)


def run_of(settings: RolloutCollectionConfig, clock: Clock) -> Run:
    """Return the run that the settings write to."""
    return Run(
        run_paths(settings),
        clock,
        durability=Durability(settings.durability),
        record_omitted=settings.record_omitted_rollouts,
        take_over=settings.take_over,
    )


def counting_of(settings: RolloutCollectionConfig) -> Counting:
    """Return what the settings count as zero; what is missing is where the run computes its metrics alone."""
    missing = settings.count_missing_rollouts_as_zero and not settings.disable_aggregation
    return Counting(frozenset(settings.count_failure_classes_as_zero), missing)


def _skills_ref(settings: RolloutCollectionConfig) -> JsonObject | None:
    if settings.skills is None:
        return None
    return load_skills(Path(resolve_read_path(settings.skills.path))).model_dump(mode="json")
