"""`RolloutAggregationHelper`: one set of scores from the results of several runs.

Rules:
* Nothing is decided here; each step is a room's.
* The decision that a strict aggregation is incomplete comes before metrics are computed; servers that failed are told
  once, after everything else is on disk.
* A head server is asked only where there is something to score or to count.

Source: collection.md §6.2, §6.7, §10.4, §11, §21.4.27.
"""

import asyncio
import logging
import threading
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Final, NamedTuple

import msgspec
from omegaconf import DictConfig, OmegaConf

from rollbook.api.batch import aggregation_of, check_batch
from rollbook.api.shard_request import AggregationResult
from rollbook.clock import Clock, SystemClock, timestamp
from rollbook.config.collection import RolloutAggregationConfig
from rollbook.config.parser import get_global_config_dict
from rollbook.config.types import BaseServerConfig
from rollbook.dispatch.transport import Transport
from rollbook.errors import HeadServerUnreachableError, IncompleteEvaluationError, RunError
from rollbook.ledger.paths import RunPaths
from rollbook.ledger.places import refuse_no_file
from rollbook.ledger.reader import Line, scan_whole
from rollbook.ledger.whole_file import whole_file
from rollbook.records.coverage import Coverage
from rollbook.records.json_values import JsonObject
from rollbook.records.keys import AGENT_REF_KEY, NG_ENVIRONMENT_SERVER_KEY
from rollbook.scoring.imputation import Counting, without_failures
from rollbook.servers.head_lookup import fetch_global_config
from rollbook.verbs.aggregate import all_of, asked, cover_tasks, in_thread, not_served
from rollbook.verbs.aggregate_shards import Aggregation, ReadShards, read_shards
from rollbook.verbs.batch_status import read_batch_status, with_aggregation, write_batch_status
from rollbook.verbs.light_rows import Serving
from rollbook.verbs.merged_run import without_merged
from rollbook.verbs.metrics_file import ERROR_KEY, LocalEntry, doubts_of, write_metrics
from rollbook.verbs.shard_coverage import GroupReport, summed
from rollbook.verbs.shard_files import refuse_over_run, shard_files
from rollbook.verbs.shard_groups import MetricsGroup, Shard, number_alike, without_plan
from rollbook.verbs.shard_output import own_reports, refuse_file_of_run, refuse_lost_rows

_LOG: Final = logging.getLogger(__name__)
_NO_DEPLOYMENT: Final = "computed without the server, which was not asked: what any server computes"
_NAMED: Final = 3
_FAILED: Final = "the server's own metrics are missing; these are the ones that any server computes"


class RolloutAggregationHelper:
    """Scores from the saved results of one or several runs."""

    async def run_from_config(self, config: RolloutAggregationConfig) -> Path | None:
        """Aggregate, and return the metrics file; None where there is nothing to score. What is to be told is logged.

        Raises:
            ConfigError: no shard, or shards that cannot be aggregated together; nothing was written.
            RunError: not everything is there that was to be, or a server failed; what was computed is on disk.

        """
        result = await aggregate_shards(config, get_global_config_dict())
        for told in (*result.notes, *doubts_of(result.metrics)):
            _LOG.warning("%s", told)
        return result.files.get("aggregate metrics")


async def aggregate_shards(
    settings: RolloutAggregationConfig, global_config: DictConfig, clock: Clock | None = None
) -> AggregationResult:
    """Aggregate the runs that `settings` name, write the files, and return what came of it; raises as the class does.

    The head server is the one of `global_config`.
    """
    output = Path(settings.output_jsonl_fpath)
    refuse_no_file(output)
    refuse_file_of_run(output)
    if settings.merge_shards:
        refuse_over_run(output)
    files = shard_files(settings.input_glob, output, merging=settings.merge_shards)
    if settings.merge_shards:
        refuse_lost_rows(output, files.outputs)
    outputs, passed_over = without_merged(files.outputs)
    inventory = settings.materialized_inputs_jsonl_fpath
    read = read_shards(
        outputs,
        Path(inventory) if inventory else None,
        retry_terminal_timeouts=settings.retry_terminal_timeouts,
    )
    check_batch(settings.batch_manifest_fpath, _plans(read.shards))
    async with AsyncExitStack() as serving:
        reached = await _reached(read, global_config, serving)
        notes = [*files.notes, *passed_over, *read.notes, *reached.notes]
        run = _Aggregating(settings, RunPaths(output), clock or SystemClock(), notes)
        return await run.carried_out(read, reached.transport, reached.serving)


def _plans(shards: Sequence[Shard]) -> Iterable[Line]:
    return chain.from_iterable(scan_whole(shard.paths.materialized_inputs) for shard in shards)


class _Reached(NamedTuple):
    """A running deployment, if there is one that is of any use, and what is to be told where there is none."""

    notes: tuple[str, ...] = ()
    transport: Transport | None = None
    serving: Serving | None = None


async def _reached(read: ReadShards, config: DictConfig, serving: AsyncExitStack) -> _Reached:
    """Return the running deployment, if there is one and it is of any use."""
    named = config.get("head_server")
    if not read.have_records or named is None:
        return _Reached()
    head = BaseServerConfig.model_validate(OmegaConf.to_container(named, resolve=True))
    try:
        known = await asyncio.to_thread(fetch_global_config, head)
    except HeadServerUnreachableError:
        at = f"{head.host}:{head.port}"
        return _Reached((f"no head server answers at {at}: metrics are computed here, as any server computes them",))
    from rollbook.api.aggregating import served_by  # noqa: PLC0415  slow to import, and not always wanted
    from rollbook.plan.directory import Directory  # noqa: PLC0415  the same
    from rollbook.servers.serving.remote import RemoteDeployment  # noqa: PLC0415  the same

    deployment = RemoteDeployment(head, known=known)
    serving.push_async_callback(deployment.close)
    await deployment.start()
    return _Reached((), deployment, served_by(Directory(known)))


class _Aggregating:
    """One aggregation, once it is known what is aggregated and whom to ask."""

    def __init__(self, settings: RolloutAggregationConfig, paths: RunPaths, clock: Clock, notes: list[str]) -> None:
        self._settings = settings
        self._paths = paths
        self._clock = clock
        self._notes = notes
        self._over = threading.Event()
        self._overlap = self._alike = False
        self._own = own_reports(paths.output, merging=settings.merge_shards)

    async def carried_out(
        self, read: ReadShards, transport: Transport | None, serving: Serving | None
    ) -> AggregationResult:
        """Do all that was asked for."""
        settings = self._settings
        counting = Counting(frozenset(settings.count_failure_classes_as_zero), settings.count_missing_rollouts_as_zero)
        with Aggregation(read.shards, counting, serving) as found:
            self._notes += found.notes
            self._overlap = bool(found.overlaps)
            self._alike = not settings.disable_health_check and number_alike(found.groups)
            groups = _withheld(found.reports(settings.min_coverage), read.damaged)
            outputs = tuple(shard.output for shard in read.shards)
            result = AggregationResult(
                outputs, groups, summed(group.coverage for group in groups), damaged=read.damaged
            )
            folds = [shard.standings for shard in read.shards]
            self._notes += without_failures(counting, folds, result.coverage.failed_by_class)
            error = self._rejection(result.coverage, read.shards)
            if error is not None:
                result = replace(result, groups=tuple(group.rejected_by(error) for group in groups))
            result = replace(result, files=self._write_coverage(result), notes=tuple(self._notes))
            if error is not None:
                error.result = result
                raise error
            entries = await self._metrics(found, transport) if found.counted else []
            if settings.merge_shards:
                now = timestamp(self._clock.now())
                merged = await in_thread(self._over, lambda: found.write_merged(self._paths, now))
                self._notes += merged.notes
        if not entries:
            self._have_no_metrics()
        self._refresh(read.shards, entries)
        files, notes = self._files(result, entries), tuple(self._notes)
        result = await self._checked(replace(result, metrics=tuple(entries), files=files, notes=notes))
        _raise_failures(result)
        return result

    def _have_no_metrics(self) -> None:
        kept = self._own.keep_metrics()
        if not kept:
            self._paths.aggregate_metrics.unlink(missing_ok=True)
        self._notes.append(f"nothing is scored: there are no metrics{' but those that the run has' if kept else ''}")

    def _write_coverage(self, result: AggregationResult) -> dict[str, Path]:
        path = self._paths.coverage
        if self._own.keep_coverage():
            self._notes.append(f"{path} is the run's own report, and stays as it is")
            return {}
        with whole_file(path) as file:
            file.write(msgspec.json.format(msgspec.json.encode(result.to_json()), indent=2) + b"\n")
        return {"coverage": path}

    def _rejection(self, coverage: Coverage, shards: Sequence[Shard]) -> IncompleteEvaluationError | None:
        settings = self._settings
        unknown = without_plan(shards) if settings.require_complete else ()
        if unknown and not coverage.owed:
            why = f"EVAL FAILED: nobody knows whether this is all: no plan lies beside {_named(unknown)}"
            return IncompleteEvaluationError(f"{why}. Name a plan of all shards with --materialized-inputs")
        error = settings.completion_rejection(
            coverage.planned, (), coverage.completed, retryable=bool(coverage.owed), made_progress=False
        )
        if error is None:
            return None
        done = f"EVAL FAILED: {coverage.completed}/{coverage.planned} samples completed"
        return IncompleteEvaluationError(f"{done}. {self._what_to_do(coverage, shards)}", retryable=error.retryable)

    def _what_to_do(self, coverage: Coverage, shards: Sequence[Shard]) -> str:
        """Return where a rejected aggregation's counts are, and what may complete its shards."""
        damaged = tuple(shard.output for shard in shards if shard.is_damaged)
        if damaged:
            return (
                f"Files of {_named(damaged)} are damaged; gym eval status names each place. Mend them before a resume"
            )
        rest = "; run the rest of them with gym eval run --resume" if coverage.owed else ""
        return f"Shards stay as they are, counted in {self._paths.coverage}{rest}"

    async def _metrics(self, found: Aggregation, transport: Transport | None) -> list[JsonObject]:
        with ExitStack() as holding:
            entries = await all_of(self._entry(found, group, transport, holding) for group in found.counted)
            self._own.refuse_others(entries)
            path = self._paths.aggregate_metrics
            return await in_thread(self._over, lambda: write_metrics(path, entries, self._over.is_set))

    async def _entry(
        self, found: Aggregation, group: MetricsGroup, transport: Transport | None, holding: ExitStack
    ) -> JsonObject | LocalEntry:
        if transport is None:
            return found.local(group, {}, _NO_DEPLOYMENT)
        if not group.is_served:
            return found.local(group, not_served(group.name), _FAILED)
        folder = self._paths.output.parent
        folder.mkdir(parents=True, exist_ok=True)
        body = await in_thread(self._over, lambda: found.body(group, folder, holding))
        answer = await asked(group.name, body, transport)
        if ERROR_KEY in answer:
            return found.local(group, answer, _FAILED)
        tasks = answer["group_level_metrics"]
        if isinstance(tasks, list):
            cover_tasks(tasks, found.expected(group))
        return found.head(group) | found.with_share(group, answer)

    def _refresh(self, shards: Sequence[Shard], entries: list[JsonObject]) -> None:
        """Say in the status of each shard that has one what became of the aggregation."""
        outcome = aggregation_of(entries)
        for shard in shards:
            try:
                status = read_batch_status(shard.output)
                if status is not None:
                    at = timestamp(self._clock.now())
                    write_batch_status(shard.output, with_aggregation(status, outcome, updated_at=at))
            except OSError as error:
                self._notes.append(f"{shard.paths.batch_status} cannot be written: {error}")

    def _files(self, result: AggregationResult, entries: list[JsonObject]) -> dict[str, Path]:
        merged = {"rollouts": self._paths.output} if self._settings.merge_shards else {}
        metrics = {"aggregate metrics": self._paths.aggregate_metrics} if entries else {}
        return merged | metrics | dict(result.files)

    async def _checked(self, result: AggregationResult) -> AggregationResult:
        """Return `result` with what a health check found, which fails nothing that is on disk.

        Shards are checked, of which the merged rows hold what stands alone; where they overlap, the merged rows are.
        """
        settings = self._settings
        if settings.disable_health_check:
            return result
        from rollbook.api.shard_health import checked_health  # noqa: PLC0415  not every aggregation is checked

        is_merged_alone = settings.merge_shards and self._overlap
        outputs = [self._paths.output] if is_merged_alone else [one for one in result.shards if one.is_file()]
        folder = self._paths.output.parent
        work = partial(checked_health, outputs, folder, settings, result.coverage, number_alike=self._alike)
        report, notes = await in_thread(self._over, work)
        files = dict(result.files) if report is None else {**result.files, "health": report}
        return replace(result, notes=(*result.notes, *notes), files=files)


def _withheld(groups: tuple[GroupReport, ...], damaged: Sequence[Path]) -> tuple[GroupReport, ...]:
    """Return the groups without headlines where files of a shard cannot be believed."""
    if not damaged:
        return groups
    why = f"files of {_named(damaged)} are damaged; gym eval status names each place"
    return tuple(replace(group, headline=msgspec.structs.replace(group.headline, withheld=why)) for group in groups)


def _named(runs: Sequence[Path]) -> str:
    return ", ".join(map(str, runs[:_NAMED])) + (", …" if len(runs) > _NAMED else "")


def _raise_failures(result: AggregationResult) -> None:
    """Tell of every server that gave no metrics, once what was computed is on disk."""
    failures = [(entry, error) for entry in result.metrics if isinstance(error := entry.get(ERROR_KEY), Mapping)]
    if not failures:
        return
    told = "; ".join(f"{name_of(entry)}: {error.get('type')}: {error.get('message')}" for entry, error in failures)
    error = RunError(
        f"{len(failures)} of {len(result.metrics)} servers gave no metrics of their own ({told}); "
        f"{result.files['aggregate metrics']} holds what any server computes in their place"
    )
    error.result = result
    raise error


def name_of(entry: JsonObject) -> str:
    """Return what an entry of aggregate metrics is called."""
    agent = entry.get(AGENT_REF_KEY)
    return str(agent.get("name") if isinstance(agent, Mapping) else entry.get(NG_ENVIRONMENT_SERVER_KEY))
