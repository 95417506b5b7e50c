"""One evaluation, from settings to scores: plan, serve, collect, aggregate, in that order.

Rules:
* A fault in the input or in the configuration shows before a server starts, and a server that does not start leaves
  an earlier run as it was.
* What is returned says what it covers.

Source: collection.md §2, §6.1, §15; servers.md §8.3.
"""

from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from rollbook.api.options import plan_options, policy_of, prompt_of, sources_of
from rollbook.api.request import EvaluationRequest, EvaluationResult, ServeMode, deployment_for
from rollbook.api.unsupported import refuse_unsupported
from rollbook.clock import Clock, SystemClock
from rollbook.errors import IncompleteEvaluationError, NothingProducedError
from rollbook.ledger.paths import RunPaths
from rollbook.ledger.run import Plan, Run, files_of
from rollbook.plan.directory import Directory
from rollbook.plan.expand import Expansion
from rollbook.plan.rollouts import rollout_of
from rollbook.records.event import RunPlanned
from rollbook.records.json_values import JsonObject
from rollbook.records.standing import Coverage, Standings
from rollbook.scoring.tally import Tally
from rollbook.servers.deployment import Deployment
from rollbook.verbs.aggregate import aggregate
from rollbook.verbs.collect import collect
from rollbook.verbs.prepare import planned_rows


async def evaluate(request: EvaluationRequest, clock: Clock | None = None) -> EvaluationResult:
    """Plan, serve, collect and aggregate.

    Raises:
        ConfigError: a configuration or a dataset that cannot be run; nothing was sent.
        OutputExistsError: the output holds an earlier run.
        ServingError: servers that did not start.
        RunError: a run that ended without what it promised; what was collected is on disk.

    """
    settings = request.settings
    refuse_unsupported(settings)
    run = Run(RunPaths(Path(settings.output_jsonl_fpath)), record_omitted=settings.record_omitted_rollouts)
    with run.claimed():
        async with AsyncExitStack() as serving:
            deployment = deployment_for(request)
            serving.push_async_callback(deployment.close)
            if request.serve is ServeMode.NONE:
                await deployment.start()
            session = Session(request, run, deployment, clock or SystemClock())
            with session.planned() as plan:
                if plan.rollouts == 0:
                    return session.nothing_to_do()
                if request.serve is not ServeMode.NONE:
                    await deployment.start()
                plan.commit()
            return await session.carried_out(plan.rollouts)


@dataclass(slots=True)
class Session:
    """One process's stay in a run."""

    request: EvaluationRequest
    run: Run
    deployment: Deployment
    clock: Clock
    notes: list[str] = field(default_factory=list)
    tasks: int = 0
    directory: Directory = field(init=False)

    def __post_init__(self) -> None:
        self.directory = Directory(self.deployment.global_config_dict)

    @contextmanager
    def planned(self) -> Iterator[Plan]:
        """Give the plan that this session carries out: a fresh one, or the one that is on disk."""
        settings = self.request.settings
        if settings.resume_from_cache and self.run.can_continue:
            self.notes += [repair.told for repair in self.run.repair()]
            self.notes.append("the saved plan goes on; settings that shape tasks are those it was made with")
            yield self.run.kept_plan()
            return
        if settings.resume_from_cache:
            self.notes.append(f"nothing to resume at {self.run.paths.output}; the run starts afresh")
        if not settings.overwrite:
            self.run.refuse_existing()
        expansion = Expansion(plan_options(settings, self.directory.only_agent))
        rows = planned_rows(
            sources_of(settings),
            expansion,
            resolve=self.directory.resolved,
            prompt=prompt_of(settings),
            interleave=settings.interleave_repeats,
        )
        with self.run.drafted(rows) as draft:
            self.notes += expansion.notes
            self.tasks = expansion.tasks
            yield draft

    def nothing_to_do(self) -> EvaluationResult:
        """Return what a plan without rollouts comes to."""
        self.notes.append("nothing to do: the plan holds no rollouts")
        return EvaluationResult(Tally().scores(), Coverage(planned=0), {}, (), tuple(self.notes))

    async def carried_out(self, planned: int) -> EvaluationResult:
        """Collect what the plan owes, then aggregate what stands."""
        standings = self.run.standings()
        before = standings.coverage(planned)
        settled = planned - before.untouched
        self.request.observe(RunPlanned(self.tasks, planned, settled))
        await collect(
            (rollout_of(line, self.directory.find) for line in self.run.planned_lines()),
            self.run,
            standings,
            transport=self.deployment,
            policy=policy_of(self.request.settings),
            observe=self.request.observe,
            clock=self.clock,
        )
        coverage = standings.coverage(planned)
        if not coverage.law_holds:
            self.notes.append(f"the files hold records beyond the plan's {planned} rollouts; the counts do not add up")
        self._refuse_empty(coverage)
        metrics = await self._aggregated()
        return self._result(standings, coverage, metrics)

    def _refuse_empty(self, coverage: Coverage) -> None:
        if coverage.settled_with_result == 0:
            raise NothingProducedError(
                f"None of the {coverage.planned} dispatched rollouts produced a result "
                f"{dict(coverage.failed_by_class)}; see {self.run.paths.failures}"
            )
        if self.request.settings.require_complete and coverage.settled_with_result < coverage.planned:
            raise IncompleteEvaluationError(
                f"EVAL FAILED: {coverage.settled_with_result}/{coverage.planned} samples completed. "
                f"Partial artifacts retained at {self.run.paths.output}"
            )

    async def _aggregated(self) -> list[JsonObject]:
        if self.request.settings.disable_aggregation:
            self.notes.append("aggregation is off; the servers' own metrics were not computed")
            return []
        return await aggregate(self.run.paths, self.deployment)

    def _result(self, standings: Standings, coverage: Coverage, metrics: list[JsonObject]) -> EvaluationResult:
        tally = Tally()
        for record in standings:
            tally.add(record)
        failed = [entry for entry in metrics if "aggregation_error" in entry]
        for entry in failed:
            self.notes.append(f"metrics of {entry['agent_ref']} could not be computed: {entry['aggregation_error']}")
        files = files_of(self.run.paths)
        return EvaluationResult(tally.scores(), coverage, files, tuple(metrics), tuple(self.notes))
