"""One evaluation, from settings to scores: plan, serve, collect, aggregate, in that order.

Rules:
* A fault in the input or in the configuration shows before a server starts, and a server that does not start leaves
  an earlier run as it was.
* What is returned says what it covers.
* A note is told once, as soon as it is known: before anything is sent where it is about the run that is gone on with.

Source: collection.md §2, §6.1, §15; servers.md §8.3.
"""

import asyncio
from collections import Counter
from collections.abc import Coroutine
from contextlib import AsyncExitStack
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from rollbook.api.batch import StatusFile, aggregation_of
from rollbook.api.collecting import Collecting
from rollbook.api.conclusion import Ended, held_in_words, rejection
from rollbook.api.driver import check_driver
from rollbook.api.options import counting_of, run_of
from rollbook.api.preparation import earlier_rows, prepared
from rollbook.api.request import EvaluationRequest, EvaluationResult, ServeMode, deployment_for
from rollbook.api.session import Planned, PlannedFor, Session
from rollbook.api.settled import settled_scores
from rollbook.api.unsupported import refuse_unsupported, without_effect
from rollbook.clock import Clock, SystemClock
from rollbook.dispatch.observing import Guarded
from rollbook.dispatch.stop import Stop
from rollbook.errors import EarlyStopError, LedgerError, RunError, RunStoppedError
from rollbook.ledger.contradictions import unplanned
from rollbook.ledger.run import Run, explained, files_of
from rollbook.records.coverage import Coverage
from rollbook.records.event import Observe, RunNoted, RunPlanned
from rollbook.records.json_values import JsonObject
from rollbook.records.outcome import Failed, Result
from rollbook.records.run_status import RunState
from rollbook.records.standing import Standings
from rollbook.scoring.coverage_report import CoverageReport, coverage_report
from rollbook.scoring.imputation import added, without_failures
from rollbook.scoring.tally import RunScores, scores_of
from rollbook.verbs.aggregate import aggregate
from rollbook.verbs.batch_status import IncompleteReason
from rollbook.verbs.coverage_file import counted_before, write_coverage
from rollbook.verbs.light_rows import Chosen
from rollbook.verbs.metrics_file import warnings_of
from rollbook.verbs.model_use import NO_MODEL_USED, no_result_used_the_model
from rollbook.verbs.status import read_run

T = TypeVar("T")


async def evaluate(
    request: EvaluationRequest, clock: Clock | None = None, stop: Stop | None = None
) -> EvaluationResult:
    """Plan, serve, collect and aggregate; a `stop` that is asked for ends it early, with what finished on disk.

    Raises:
        ConfigError: a configuration or a dataset that cannot be run; nothing was sent.
        OutputExistsError: the output holds an earlier run.
        ResumeRefusedError, DamagedRunError: the run at the output cannot be gone on with as it stands.
        ServingError: servers that did not start.
        RunError: a run that ended without what it promised; what was collected is on disk.

    """
    refuse_unsupported(request.settings)
    await check_driver(request)
    clock = clock or SystemClock()
    stop = stop or Stop()
    run = run_of(request.settings, clock)
    with run.claimed(), earlier_rows(request.settings, request.preparation, run) as settled:
        of_rows = await _prepared(request, run, stop)
        async with AsyncExitStack() as serving:
            deployment = deployment_for(request)
            serving.push_async_callback(deployment.close)
            if request.serve is ServeMode.NONE:
                await deployment.start()
            session = Session(request, run, deployment, clock)
            session.notes += [*without_effect(request.settings), *of_rows]
            if run.lock.warning:
                session.notes.append(run.lock.warning)
            evaluation = _Evaluation(session, Guarded(request.observe), stop)
            with session.planned() as plan:
                evaluation.tell_notes()
                if evaluation.is_complete(plan):
                    return evaluation.nothing_to_do(plan)
                if request.serve is not ServeMode.NONE:
                    await unless_stopped(deployment.start(), evaluation.stop)
                if plan.owed:
                    plan.commit()
                settled()
            result = await evaluation.carried_out(plan)
        return await evaluation.checked(result)


async def _prepared(request: EvaluationRequest, run: Run, stop: Stop) -> tuple[str, ...]:
    """Make the run's rows ready where it collects a split, and return what is to be told about them."""
    if request.preparation is None:
        return ()
    return await prepared(request.global_config, request.settings, request.preparation, run, stop)


async def unless_stopped(work: Coroutine[None, None, None], stop: Stop) -> None:
    """Wait for `work`, or end it as soon as the run is to stop.

    Raises:
        RunStoppedError: the stop came first.

    """
    working = await _ended(work, stop)
    if stop.asked.is_set():
        raise RunStoppedError(f"stopped before anything was sent: {stop.why}")
    await working


async def _ended(work: Coroutine[None, None, T], stop: Stop) -> "asyncio.Future[T]":
    """Return `work` once it is done; as soon as the run is to stop, it is cancelled."""
    working, asked = asyncio.ensure_future(work), asyncio.ensure_future(stop.asked.wait())
    try:
        await asyncio.wait({working, asked}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        asked.cancel()
        if not working.done():
            working.cancel()
            await asyncio.wait({working})
    return working


class _Evaluation:
    """What is made of a session's plan."""

    def __init__(self, session: Session, observe: Observe, stop: Stop) -> None:
        self._session = session
        self._paths = session.run.paths
        self._settings = session.request.settings
        self._observe = observe
        self._collecting = Collecting(session, observe, stop)
        self._counting = counting_of(self._settings)
        self._made_progress = False
        self._covered: CoverageReport | None = None
        self._told = 0
        self.stop = stop

    def tell_notes(self) -> None:
        """Let whoever looks on know of the notes that were not told yet."""
        for text in self._session.notes[self._told :]:
            self._observe(RunNoted(text))
        self._told = len(self._session.notes)

    def is_complete(self, plan: Planned) -> bool:
        """Whether there is neither anything to run nor any metric to compute."""
        if plan.owed or plan.rollouts == 0:
            return plan.owed == 0
        as_before = self._counting == counted_before(self._paths.coverage)
        return self._settings.disable_aggregation or (as_before and self._saved_metrics() is not None)

    def nothing_to_do(self, plan: Planned) -> EvaluationResult:
        """Return what a plan comes to of which nothing is owed."""
        if plan.rollouts == 0:
            self._session.notes.append("nothing to do: the plan holds no rollouts")
            return self._result(Coverage(planned=0), [])
        self._session.notes.append("already complete: nothing is owed, and nothing was sent")
        coverage = self._session.coverage()
        self._refuse_unfinished(coverage, 0)
        return self._result(coverage, self._saved_metrics() or [])

    def _saved_metrics(self) -> list[JsonObject] | None:
        """Return the metrics on disk, or None when there are none that can be read; they can always be had again."""
        try:
            return msgspec.json.decode(self._paths.aggregate_metrics.read_bytes(), type=list[JsonObject])
        except (FileNotFoundError, msgspec.DecodeError, UnicodeDecodeError):
            return None

    async def carried_out(self, plan: Planned) -> EvaluationResult:
        """Collect what the plan owes, then aggregate what stands."""
        session = self._session
        groups, _ = session.standings.counted(session.rules)
        before_this = settled_scores(session.standings, session.rules)
        planned = RunPlanned(plan.tasks, plan.rollouts, plan.rollouts - plan.owed, *before_this)
        status, before = self._status_file(), _endings(session.standings)
        async with self._collecting.counted(groups, session.request.sink):
            self._collecting.observe(planned)
            if plan.owed:
                await self._collected(plan.owed, status)
                status = self._status_file()
        coverage = session.coverage()
        if not coverage.law_holds:
            session.notes.append(
                f"the files hold records beyond the plan's {plan.rollouts} rollouts; the counts are off"
            )
            session.notes += map(str, unplanned(self._paths, session.standings))
        session.notes += without_failures(self._counting, [session.standings], coverage.failed_by_class)
        self._save_coverage()
        self._made_progress = _endings(session.standings) > before
        return await self._concluded(coverage, plan.owed, status)

    async def _collected(self, owed: int, status: StatusFile) -> None:
        """Collect what is owed; what became of it is saved as well where the run ends with an error."""
        try:
            async with status.kept():
                await self._collecting.run(owed)
        except RunError:
            self._save_coverage()
            raise

    def _coverage_report(self) -> CoverageReport:
        """Return what became of every rollout, once nothing is in flight any more."""
        if self._covered is None:
            self._covered = coverage_report(self._session.standings, self._counting, self._session.rules_of(None))
        return self._covered

    def _save_coverage(self) -> None:
        """Write what became of every rollout where the run is still ours; it is not worth less without."""
        try:
            self._session.run.lock.check()
            write_coverage(self._paths.coverage, self._coverage_report(), self._counting, self._settings.min_coverage)
        except (OSError, LedgerError) as error:
            self._session.notes.append(f"the coverage report could not be written: {error}")

    async def _concluded(self, coverage: Coverage, sent: int, status: StatusFile) -> EvaluationResult:
        if self._cut_short(coverage) is not None:
            status.write(RunState.INTERRUPTED, reason=IncompleteReason.INTERRUPTED)
            self._raise_early_stop(coverage)
            return self._result(coverage, [])
        held = held_in_words(coverage, self._paths)
        if held is not None and coverage.settled_with_result:
            self._session.notes.append(held)
        try:
            self._refuse_unfinished(coverage, sent)
        except RunError:
            status.write(RunState.FINISHED, reason=IncompleteReason.REJECTED)
            raise
        if not self._settings.disable_aggregation:
            status.write(RunState.FINISHED)
        try:
            with explained(self._paths, self._paths.aggregate_metrics):
                metrics = await self._aggregated()
        except LedgerError as error:
            self._session.notes.append("the results are safe; --resume computes the metrics that could not be written")
            error.result = self._result(coverage, [])
            raise
        if metrics is None:
            self._session.notes.append("stopped before the metrics were computed; --resume computes them")
            return self._result(coverage, [])
        status.write(RunState.FINISHED, aggregation_of(metrics))
        return self._result(coverage, metrics)

    async def checked(self, result: EvaluationResult) -> EvaluationResult:
        """Return `result` with how well the records are, where that was not turned off."""
        settings = self._settings
        if result.stopped is not None or settings.disable_aggregation or settings.disable_health_check:
            return result
        from rollbook.api.health_step import with_health  # noqa: PLC0415  a run starts sooner without it

        return await with_health(result, settings, self._paths, self._observe, self.stop)

    def _status_file(self) -> StatusFile:
        session, settings = self._session, self._settings
        rules = session.rules_of(None)
        return StatusFile(
            self._paths, session.manifest, session.standings, rules, session.clock, settings.batch_manifest_fpath
        )

    def _cut_short(self, coverage: Coverage) -> str | None:
        """Return why the run ended early; a drain that left nothing to run did not end it early."""
        return self.stop.why if self.stop.asked.is_set() or coverage.owed else None

    def _raise_early_stop(self, coverage: Coverage) -> None:
        early = self._collecting.early
        if early is not None:
            error = EarlyStopError(early.why, resumable=early.resumable)
            error.result = self._result(coverage, [])
            raise error

    def _refuse_unfinished(self, coverage: Coverage, sent: int) -> None:
        """Reject the run where it came to nothing, or to less than it was to."""
        counts = any(True for _ in added(self._session.standings, self._counting, self._session.rules_of(None)))
        error = rejection(Ended(self._settings, self._paths, coverage, sent, counts, self._made_progress))
        if error is not None:
            result = self._result(coverage, [])
            error.result = replace(result, scores=result.scores.rejected_by(error))
            raise error

    async def _aggregated(self) -> list[JsonObject] | None:
        """Return the metrics that the servers computed; None when the run was stopped first."""
        session = self._session
        if self._settings.disable_aggregation:
            session.notes.append("aggregation is off; the servers' own metrics were not computed")
            return []
        plan, chosen = PlannedFor(session), Chosen(self._counting, session.rules_of(None))
        work = aggregate(
            self._paths, session.standings, plan, session.deployment, serving=plan.server_of, chosen=chosen
        )
        aggregating = await _ended(work, self.stop)
        return None if aggregating.cancelled() else aggregating.result()

    def _scores(self) -> RunScores:
        if getattr(self._session, "manifest", None) is None:
            return scores_of(self._session.standings)
        report, rules = self._coverage_report(), self._session.rules_of(None)
        doubtful = report.coverage.settled_with_result and no_result_used_the_model(self._paths.output)
        return replace(
            scores_of(self._session.standings, rules, self._counting, self._settings.min_coverage),
            warnings=(NO_MODEL_USED,) if doubtful else (),
            covers=report.told(self._paths.failures.name).lines(),
            exported=report.metrics(),
        )

    def _result(self, coverage: Coverage, metrics: list[JsonObject]) -> EvaluationResult:
        notes, manifest = self._session.notes, getattr(self._session, "manifest", None)
        notes += warnings_of(metrics)
        self.tell_notes()
        return EvaluationResult(
            self._scores(),
            coverage,
            files_of(self._paths),
            tuple(metrics),
            tuple(notes),
            self._cut_short(coverage),
            self._session.went_on_over_damage and bool(read_run(self._paths.output).damage),
            self._collecting.pace,
            self._collecting.concurrency,
            self._collecting.loop_lag,
            None if manifest is None else manifest.run_id,
        )


def _endings(standings: Standings) -> int:
    """Return how many records are endings that a run gets on by; an interruption is none."""
    kinds = standings.kinds_of_ending
    counts = Counter(standings.table.kinds).items()
    return sum(count for kind, count in counts if isinstance(kinds[kind], Result | Failed))
