"""`RolloutCollectionHelper`: collection as the field's own API names it.

Rules:
* Nothing is decided here; each method is a thin face over a room.
* Rows that a caller hands over are never mutated, except where the contract says so (`resolve_task_sources`).
* Direct calls are checked when they are made: what they return starts nothing that could be told to be wrong before.

Source: collection.md §11.
"""

import logging
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

from omegaconf import DictConfig
from pydantic import ValidationError

from rollbook.api.arguments import (
    Rows,
    checked_config,
    checked_ids,
    checked_rows,
    checked_server,
    checked_settings,
    checked_switches,
)
from rollbook.api.direct_call import DirectCall, Pacing, reached
from rollbook.api.direct_errors import DirectCallError
from rollbook.api.direct_request import DirectRequest
from rollbook.api.direct_rollouts import Evidence, Handover
from rollbook.api.direct_rows import DirectRow, RunNaming
from rollbook.api.direct_sending import MOST_SENDS
from rollbook.api.evaluation import evaluate
from rollbook.api.logged import logged
from rollbook.api.preparation import end_to_end
from rollbook.api.request import EvaluationRequest, ServeMode
from rollbook.api.row_results import RowResults
from rollbook.api.saved_results import saved_results
from rollbook.api.shards import ShardTarget
from rollbook.clock import SystemClock
from rollbook.config.collection import E2ERolloutCollectionConfig, RolloutCollectionConfig
from rollbook.config.parser import get_global_config_dict
from rollbook.config.routing import resolve_task_sources
from rollbook.config.types import BaseServerConfig
from rollbook.dispatch.completion_budget import DispatchLatencyTracker
from rollbook.errors import InputError
from rollbook.inputs.examples import rows_of
from rollbook.inputs.row_names import faults_in_routing
from rollbook.ledger.paths import RunPaths
from rollbook.plan.directory import Directory
from rollbook.plan.environment_routes import EnvironmentRoutes
from rollbook.plan.expand import Expansion
from rollbook.plan.options import PlanOptions
from rollbook.plan.targets import name_in
from rollbook.records.keys import AGENT_REF_KEY, TASK_SOURCE_KEY
from rollbook.records.source import is_materialized
from rollbook.servers.client import ServerClient, setup_server_client
from rollbook.verbs.prepare import planned_rows

_LOG = logging.getLogger(__name__)

Config = DictConfig | Mapping[str, Any]
"""A merged configuration, which may be a mapping as well."""
Head = BaseServerConfig | Mapping[str, object] | None
"""Where a head server listens: what `BaseServerConfig` holds, as it is or as a mapping; None for our own."""


class RolloutCollectionHelper:
    """Prepares and collects rollouts against servers that are running already.

    Each call fetches the deployment's configuration from its head server, and waits for it in the caller's thread. With
    `reuse_server_client` it is fetched and looked through once: of use to whoever calls again and again.
    """

    def __init__(self, reuse_server_client: bool = False) -> None:
        checked_switches(reuse_server_client=reuse_server_client)
        self._reuse = reuse_server_client
        self._client: ServerClient | None = None
        self._directory: Directory | None = None

    def preprocess_examples(
        self,
        examples: Rows,
        *,
        agent_map: Mapping[str, str] | None = None,
        fan_out: Mapping[str, list[str]] | None = None,
        num_repeats: int | Mapping[str, int] | None = 1,
        num_repeats_add_seed: bool | Mapping[str, bool] = False,
        global_config_dict: Config | None = None,
        task_ids: Iterable[str | int] | None = None,
    ) -> list[dict[str, Any]]:
        """Return one row per owed rollout, in plan order; `examples` stay as they are.

        With `global_config_dict`, rows that have only a `task_source` are given their agent, and episode tasks the
        server of their taskset, where its `environment_server_routes` names one: what this call is given goes before
        what a row names. What a person should know, such as a key of `num_repeats` that no row uses, is logged.

        Raises:
            InputError: rows at fault, all of them; repeats or a fan-out that would lose or double rollouts.
            ConfigError: an argument that cannot be followed; names it.

        """
        checked_rows(examples)
        directory = Directory(checked_config(global_config_dict)) if global_config_dict is not None else None
        options = PlanOptions(
            agent_map=agent_map or {},
            fan_out=fan_out or {},
            repeats=1 if num_repeats is None else num_repeats,
            add_seed=num_repeats_add_seed,
            task_ids=checked_ids(task_ids),
            only_agent=directory.only_agent if directory is not None else None,
            environment_routes=EnvironmentRoutes(directory.config) if directory is not None else {},
            open_routes=True,
        )
        resolve = directory.resolved if directory is not None else iter
        expansion = Expansion(options)
        rows = list(planned_rows(rows_of(examples), expansion, resolve=resolve))
        for note in expansion.notes:
            _LOG.warning("%s", note)
        return rows

    @staticmethod
    def resolve_task_sources(examples: Rows, global_config_dict: Config) -> None:
        """Give each flat row that names only a `task_source` its agent, in place; episode tasks go by their taskset.

        Raises:
            InputError: every source that leads to no agent, or a name that is no text.
            ConfigError: an argument that is no rows or no configuration; names it.

        """
        rows, config = list(checked_rows(examples)), checked_config(global_config_dict)
        for number, row in enumerate(rows):
            fault = next(_faults(row), None)
            if fault is not None:
                raise InputError(f"row {number}: {fault}")
        flat = [row for row in rows if not is_materialized(row)]
        open_rows = [row for row in flat if name_in(row.get(AGENT_REF_KEY)) is None and row.get(TASK_SOURCE_KEY)]
        agents = resolve_task_sources(config, [row[TASK_SOURCE_KEY] for row in open_rows])
        for row in open_rows:
            row[AGENT_REF_KEY] = {"name": agents[row[TASK_SOURCE_KEY]]}

    def setup_server_client(self, head_server_config: Head = None) -> ServerClient:
        """Return a client of the deployment behind the head server, by the configuration that the head has now.

        With `reuse_server_client` the configuration is fetched once, and again only for another head server. Build a
        new one of these after the configuration behind the same head changed.

        Raises:
            HeadServerUnreachableError: no head server answers; names its URL.
            ConfigError: `head_server_config` says neither nothing nor a host and a port.

        """
        given = _head_in(head_server_config)
        if not self._reuse:
            return setup_server_client(given)
        head = given or ServerClient.load_head_server_config()
        if self._client is None or self._client.head_server_config != head:
            self._client = setup_server_client(head)
        return self._client

    def run_examples(
        self,
        examples: Rows,
        head_server_config: Head = None,
        semaphore: AbstractAsyncContextManager[Any] | None = None,
        route_failures_to_sidecar: bool = False,
        environment_server_name: str | None = None,
        *,
        max_resident_tasks: int | None = None,
        dispatch_budget_s: float | None = None,
        drain_margin_s: float | None = None,
        latency_tracker: DispatchLatencyTracker | None = None,
        retry_requests: bool = True,
        enrich_results: bool = False,
        include_model_call_payloads: bool = True,
        delete_model_call_capture: bool = False,
        record_output_dir: Path | str | None = None,
        record_shard: str | None = None,
        record_omitted_rollouts: bool = False,
    ) -> RowResults:
        """Send `examples` in their order, and return an iterator over awaitables of `(row, result)` as they end.

        The rows that come back are copies with the agent that runs them. `result` is the reply to `/run`, untouched.

        Args:
            examples: rows as `preprocess_examples` returns them; no run-level options are applied here.
            head_server_config: where the deployment's head server listens; None for this process's configuration.
            semaphore: held while a row is in flight, such as an `asyncio.Semaphore`.
            route_failures_to_sidecar: a failed `/run` is a result with `_ng_failure_*` keys instead of an exception.
            environment_server_name: send every row to this environment server.
            max_resident_tasks: so many rows at most run or have ended unfetched; they start as awaitables are awaited.
                None starts all of them with the first `next`.
            dispatch_budget_s: start no row so many seconds after this call; its result then says so. Of use with
                `semaphore` or `max_resident_tasks`; without one, all rows start at once, unless it is 0.
            drain_margin_s: start none with less than this left of the budget. None takes the upper quartile of what
                rollouts took, once five have ended.
            latency_tracker: takes down how long each took that brought a result; may be shared by several calls.
            retry_requests: send a row up to three times where the request may have been lost on the way. A connection
                that does not come up is tried again either way.
            enrich_results: add the row's identity to the result, and its wall time as `ng_perf.total_latency_ms`. Rows
                that name a rollout are sent on copies that name this call's run, their replies are looked at, and their
                routed failures are `RolloutFailure`.
            include_model_call_payloads: what enriched results carry of model calls.
            delete_model_call_capture: remove what was captured of model calls once it is in the result; needs
                `include_model_call_payloads`.
            record_output_dir: record the rollouts in this folder, as a run that `gym eval run` can resume; enriches
                the results. A rollout is handed over once its record is on disk.
            record_shard: the label that names the run's files, `rollouts-<label>.jsonl` and its companions; what an
                earlier call wrote under it is replaced at once. Rows get ids that begin with this run's.
            record_omitted_rollouts: of a try that left no result, record that there was one.

        Raises:
            InputError: rows that lead nowhere or do not fit, all of them; nothing was sent. Also a `ValueError`.
            ConfigError: an argument that cannot be followed; names it.
            HeadServerUnreachableError: no head server answers.
            LedgerError: the files of the shard cannot be written, or somebody else works on it. Awaitables raise
                `ShardTakenOverError` once another call opened the label.

        """
        checked_switches(
            route_failures_to_sidecar=route_failures_to_sidecar,
            retry_requests=retry_requests,
            enrich_results=enrich_results,
            include_model_call_payloads=include_model_call_payloads,
            delete_model_call_capture=delete_model_call_capture,
            record_omitted_rollouts=record_omitted_rollouts,
        )
        tracker = latency_tracker if latency_tracker is not None else DispatchLatencyTracker()
        target = ShardTarget.of(record_output_dir, record_shard, record_omitted=record_omitted_rollouts)
        evidence = Evidence(include_model_call_payloads, delete_model_call_capture)
        enriches = enrich_results or target is not None
        request = DirectRequest(
            Pacing(semaphore, max_resident_tasks, dispatch_budget_s, drain_margin_s, tracker),
            Handover(route_failures_to_sidecar, typed=enriches, evidence=evidence if enriches else None),
            server=checked_server(environment_server_name),
            run=RunNaming.of_call() if enriches else None,
            all_named=target is not None,
            target=target,
            most_sends=MOST_SENDS if retry_requests else 1,
        )
        return self._called(examples, head_server_config, request)

    def run_outcomes(
        self,
        examples: Rows,
        head_server_config: Head = None,
        semaphore: AbstractAsyncContextManager[Any] | None = None,
        *,
        run_id: str | None = None,
    ) -> RowResults:
        """Send `examples`, and return an iterator over awaitables of `(row, reply or RolloutFailure)` as they end.

        What came of HTTP, JSON and the shape of a reply is a record; defects and cancellation are raised. Nothing is
        kept or sent twice. Every row has to name its rollout. The copies that come back name their run: `run_id`, else
        the row's own, else one new id for all that have none.

        Raises:
            InputError: rows that lead nowhere, do not fit or name no rollout, all of them. Also a `ValueError`.
            ConfigError: an argument that cannot be followed; names it.
            HeadServerUnreachableError: no head server answers.

        """
        request = DirectRequest(
            Pacing(semaphore),
            Handover(route_failures=True, typed=True),
            run=RunNaming.of_call(run_id),
            all_named=True,
        )
        return self._called(examples, head_server_config, request)

    def _called(self, examples: Rows, head: Head, request: DirectRequest) -> RowResults:
        """Return the iterator over what `request` makes of `examples`; its budget counts from now."""
        clock = SystemClock()
        began = clock.monotonic()
        checked_rows(examples)
        client = self.setup_server_client(head)
        rows = self._rows(client, examples, request)
        handover = request.opened(rows, client.global_config_dict, clock)
        call = DirectCall(reached(client), clock, began, request.pacing, handover, request.most_sends)
        return call.results(rows)

    def _rows(self, client: ServerClient, examples: Rows, request: DirectRequest) -> list[DirectRow]:
        """Return the rows of a call; what is looked up is kept for the next one, unless it found a fault."""
        config = client.global_config_dict
        directory, self._directory = self._directory, None
        if directory is None or directory.config is not config:
            directory = Directory(config)
        rows = request.rows(examples, directory)
        self._directory = directory if self._reuse else None
        return rows

    async def run_from_config(
        self, config: RolloutCollectionConfig | E2ERolloutCollectionConfig
    ) -> list[dict[str, Any]]:
        """Collect against running servers, and return the results in (task, rollout) order.

        Settings that name a split have its declared data sets made ready, and this process serve: what they do not say
        of the collection, the configuration does. Settings that were changed since they were made are checked again.

        With `retain_results_in_memory` off the list is empty and the results are on disk alone. What a person should
        know of the run is logged.

        Raises:
            ConfigError: rows or settings that cannot be run; nothing was sent.
            RunError: a run that ended without what it promised; what was collected is on disk.

        """
        checked, cfg = checked_settings(config), get_global_config_dict()
        if isinstance(checked, RolloutCollectionConfig):
            request = EvaluationRequest(checked, cfg, ServeMode.NONE, logged)
        else:
            settings, preparation = end_to_end(cfg, checked)
            request = EvaluationRequest(settings, cfg, observe=logged, preparation=preparation)
        result = await evaluate(request)
        if not request.settings.retain_results_in_memory or "rollouts" not in result.files:
            return []
        return saved_results(RunPaths(result.files["rollouts"]))


def _faults(row: object) -> Iterator[str]:
    return (
        faults_in_routing(row)
        if isinstance(row, Mapping)
        else iter((f"expected a mapping, found {type(row).__name__}",))
    )


def _head_in(given: Head) -> BaseServerConfig | None:
    if given is None or isinstance(given, BaseServerConfig):
        return given
    try:
        return BaseServerConfig.model_validate(dict(given) if isinstance(given, Mapping) else given)
    except ValidationError as error:
        raise DirectCallError(
            f"head_server_config must be a BaseServerConfig, a mapping with its host and port, or None; found {given!r}"
        ) from error
