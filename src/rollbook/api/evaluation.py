"""One evaluation, from settings to scores: plan, serve, collect, aggregate, in that order.

Rules:
* A fault in the input or in the configuration shows before a server starts, and a server that does not start leaves
  an earlier run as it was.
* What is returned says what it covers.

Source: collection.md §2, §6.1, §15; servers.md §8.3.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass, field

from rollbook.api.options import plan_options, policy_of, prompt_of, run_paths, sources_of
from rollbook.api.request import EvaluationRequest, EvaluationResult, ServeMode, deployment_for
from rollbook.api.unsupported import refuse_unsupported
from rollbook.clock import Clock, SystemClock
from rollbook.dispatch.observing import Guarded
from rollbook.errors import ConfigError, IncompleteEvaluationError, InputError, NothingProducedError
from rollbook.ledger.run import Run, files_of
from rollbook.plan.directory import Directory
from rollbook.plan.expand import Expansion
from rollbook.plan.rollouts import next_attempt, rollout_of
from rollbook.records.event import Observe, RunPlanned
from rollbook.records.identity import RolloutKey
from rollbook.records.json_values import JsonObject
from rollbook.records.outcome import Scored
from rollbook.records.standing import Coverage, Standings
from rollbook.records.task import Rollout
from rollbook.scoring.tally import Tally
from rollbook.servers.serving.deployment import Deployment
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
    run = Run(run_paths(settings), record_omitted=settings.record_omitted_rollouts)
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
            return await session.carried_out(plan)


@dataclass(frozen=True, slots=True)
class Planned:
    """What a session carries out: so many tasks and rollouts, some settled before, in force once committed."""

    tasks: int
    rollouts: int
    settled: int
    commit: Callable[[], None]


@dataclass(slots=True)
class Session:
    """One process's stay in a run."""

    request: EvaluationRequest
    run: Run
    deployment: Deployment
    clock: Clock
    notes: list[str] = field(default_factory=list)
    standings: Standings = field(default_factory=Standings)
    planned_of: Counter[tuple[str, int]] = field(default_factory=Counter)
    directory: Directory = field(init=False)
    observe: Observe = field(init=False)

    def __post_init__(self) -> None:
        self.directory = Directory(self.deployment.global_config_dict)
        self.observe = Guarded(self.request.observe)

    @contextmanager
    def planned(self) -> Iterator[Planned]:
        """Give the plan that this session carries out: a fresh one, or the one that is on disk."""
        settings = self.request.settings
        if settings.resume_from_cache and self.run.can_continue:
            yield self._kept_plan()
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
            yield Planned(expansion.tasks, draft.rollouts, 0, draft.commit)

    def _kept_plan(self) -> Planned:
        """Mend what a dead writer left, fold what is there, and check every line of the plan; nothing is sent yet."""
        self.notes += [repair.told for repair in self.run.repair()]
        self.notes.append("resumed by the saved plan: this command's own rows, repeats and prompts were not looked at")
        self.standings = self.run.standings()
        keys: list[RolloutKey] = []
        faults: dict[str, str] = {}
        for number, line in self.run.numbered_plan():
            try:
                keys.append(rollout_of(line, self.directory.find).key)
            except ConfigError as error:
                faults.setdefault(str(error), f"{self.run.paths.materialized_inputs}:{number}: {error}")
        if faults:
            raise InputError("\n".join([*faults.values(), "Mend the configuration, or plan anew with --overwrite"]))
        settled = sum(next_attempt(key, self.standings) is None for key in keys)
        return Planned(len({key.task for key in keys}), len(keys), settled, self.run.forget_metrics)

    def nothing_to_do(self) -> EvaluationResult:
        """Return what a plan without rollouts comes to."""
        self.notes.append("nothing to do: the plan holds no rollouts")
        return EvaluationResult(Tally().scores(), Coverage(planned=0), {}, (), tuple(self.notes))

    async def carried_out(self, plan: Planned) -> EvaluationResult:
        """Collect what the plan owes, then aggregate what stands."""
        before = [record.outcome.reward for record in self.standings if isinstance(record.outcome, Scored)]
        self.observe(RunPlanned(plan.tasks, plan.rollouts, plan.settled, len(before), sum(before)))
        await collect(
            self._counted(rollout_of(line, self.directory.find) for line in self.run.planned_lines()),
            self.run,
            self.standings,
            transport=self.deployment,
            policy=policy_of(self.request.settings),
            observe=self.observe,
            clock=self.clock,
        )
        coverage = self.standings.coverage(plan.rollouts)
        if not coverage.law_holds:
            self.notes.append(f"the files hold records beyond the plan's {plan.rollouts} rollouts; the counts are off")
        self._refuse_empty(coverage, plan)
        return self._result(coverage, await self._aggregated())

    def _counted(self, rollouts: Iterable[Rollout]) -> Iterator[Rollout]:
        """Yield `rollouts`, counting how many the plan has for each server's task."""
        for rollout in rollouts:
            self.planned_of[rollout.server, rollout.key.task] += 1
            yield rollout

    def _refuse_empty(self, coverage: Coverage, plan: Planned) -> None:
        paths, done = self.run.paths, coverage.settled_with_result
        sent = plan.rollouts - plan.settled
        if done == 0 and sent == 0:
            raise NothingProducedError(
                f"nothing is left to run: the attempts of all {plan.rollouts} rollouts are spent, and none produced a "
                f"result; see {paths.failures}. Start anew with --overwrite, or give another --output"
            )
        if done == 0:
            raise NothingProducedError(
                f"None of the {sent} dispatched rollouts produced a result {dict(coverage.failed_by_class)}; "
                f"see {paths.failures}, and go on with --resume once the cause is mended"
            )
        if self.request.settings.require_complete and done < coverage.planned:
            raise IncompleteEvaluationError(
                f"EVAL FAILED: {done}/{coverage.planned} samples completed. Partial artifacts retained at "
                f"{paths.output}; run the rest with --resume"
            )

    async def _aggregated(self) -> list[JsonObject]:
        if self.request.settings.disable_aggregation:
            self.notes.append("aggregation is off; the servers' own metrics were not computed")
            return []
        return await aggregate(self.run.paths, self.standings, self.planned_of, self.deployment)

    def _result(self, coverage: Coverage, metrics: list[JsonObject]) -> EvaluationResult:
        tally = Tally()
        for record in self.standings:
            tally.add(record)
        failed = [entry for entry in metrics if "aggregation_error" in entry]
        for entry in failed:
            self.notes.append(f"metrics of {entry['agent_ref']} could not be computed: {entry['aggregation_error']}")
        files = files_of(self.run.paths)
        return EvaluationResult(tally.scores(), coverage, files, tuple(metrics), tuple(self.notes))
