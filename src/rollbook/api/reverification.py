"""Saved answers judged again, from settings to what changed: select, serve, ask the guard, judge, compare.

Rules:
* No model is asked for an answer. A fault in the rows or in the configuration shows before a server starts.
* What was judged is on disk before it counts, and is not judged again by whoever goes on.
* What is returned is read back from the files.

Source: collection.md §9.1, §10.5.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from rollbook.api.options import ceilings_of, run_of
from rollbook.api.rejudging import rejudge
from rollbook.api.request import ServeMode
from rollbook.api.reverify_metrics import metrics_of, write_counts
from rollbook.api.reverify_output import Origin, Output
from rollbook.api.reverify_request import (
    ReverificationRequest,
    ReverificationResult,
    judging_told,
    modes_of,
    refuse_existing,
    unsafe_output,
    unsafe_servers,
    verifier_keys,
)
from rollbook.api.reverify_sources import Source, source_of
from rollbook.api.settled import settled_scores
from rollbook.clock import Clock, SystemClock
from rollbook.dispatch.observing import Guarded
from rollbook.dispatch.stop import Stop
from rollbook.errors import ConfigError
from rollbook.ledger.paths import RunPaths
from rollbook.ledger.run import explained, files_of
from rollbook.records.approval import Reverified
from rollbook.records.codec import RunStamp
from rollbook.records.columns import packed_key
from rollbook.records.event import RunEnded, RunNoted, RunPlanned
from rollbook.records.json_values import JsonObject
from rollbook.records.reward_delta import reward_delta
from rollbook.scoring.run_headlines import run_headlines
from rollbook.servers.serving.deployment import Deployment
from rollbook.verbs.collect import Engine, collect
from rollbook.verbs.reverify_plan import JudgedPlan, plan_texts, refuse_unplanned, source_texts
from rollbook.verbs.reverify_routes import VerifyRoutes
from rollbook.verbs.reverify_sending import SENT_AGAIN, VerifyTransport
from rollbook.verbs.status import read_run

__all__ = ["ReverificationRequest", "ReverificationResult", "reverify"]

_TWO_VERIFIERS = (
    "the rewards of the output come from two configurations of the verifier: results that were there are as they were, "
    "and only what a judge had failed on is judged now"
)


async def reverify(
    request: ReverificationRequest, clock: Clock | None = None, stop: Stop | None = None
) -> ReverificationResult:
    """Judge saved answers again; a `stop` that is asked for ends it early, with what was judged on disk.

    Raises:
        ConfigError: rows, answers or a configuration that cannot be judged, a server that keeps state, or an output
            that holds something; nothing was sent.
        RunError: the output cannot be gone on with or written, or a judging failed and failures are not routed.
        ServingError: servers that did not start.

    """
    clock, stop = clock or SystemClock(), stop or Stop()
    async with served(request) as deployment:
        if is_in_place(request):
            return await rejudge(request, deployment, clock, stop)
        source = source_of(request.settings)
        judging = _Judging(request, deployment, source, clock, stop)
        return await judging.carried_out()


def is_in_place(request: ReverificationRequest) -> bool:
    """Whether what a judge failed on is judged for the run itself that holds it."""
    settings = request.settings
    if settings.rollouts_jsonl_fpath is None:
        return False
    same = Path(settings.rollouts_jsonl_fpath).resolve() == Path(settings.output_jsonl_fpath).resolve()
    goes_on = settings.judge_failed_only and (settings.append or settings.resume_from_cache)
    if same and not goes_on:
        raise ConfigError(
            f"{settings.output_jsonl_fpath} holds the answers that are judged; give another --output, or add what "
            "a judge owes to it with --judge-failed-only --append"
        )
    return same


@asynccontextmanager
async def served(request: ReverificationRequest) -> AsyncIterator[Deployment]:
    """Give the servers: those of others as they run, ours still to be started."""
    async with AsyncExitStack() as stack:
        deployment = request.deployment
        stack.push_async_callback(deployment.close)
        if request.serve is ServeMode.NONE:
            await deployment.start()
        yield deployment


@dataclass(slots=True)
class _Judging:
    """One command that writes an output of its own."""

    request: ReverificationRequest
    deployment: Deployment
    source: Source
    clock: Clock
    stop: Stop
    notes: list[str] = field(default_factory=list)
    routes: VerifyRoutes = field(init=False)

    def __post_init__(self) -> None:
        self.routes = VerifyRoutes(self.deployment.global_config_dict)

    async def carried_out(self) -> ReverificationResult:
        settings, inputs = self.request.settings, self.source.inputs
        if not settings.force:
            self._refuse_existing(settings.output_jsonl_fpath)
        chosen = await asyncio.to_thread(self._checked)
        for text in self.source.notes():
            self._note(text)
        if self.request.serve is not ServeMode.NONE:
            await self.deployment.start()
        forced = await self._guarded()
        collection = self.request.collection
        if forced:
            unsafe = unsafe_output(settings.output_jsonl_fpath)
            collection = collection.model_copy(update={"output_jsonl_fpath": unsafe})
        self._refuse_existing(collection.output_jsonl_fpath)
        run = run_of(collection, self.clock)
        with run.claimed():
            reverified = Reverified(
                answers=self.source.kind,
                source=str(self.source.named),
                source_run_id=self.source.run_id,
                forced=forced is not None,
            )
            keys = verifier_keys(self.deployment.global_config_dict, self.routes.used)
            origin = Origin(inputs, reverified, keys, self.source.with_agents)
            output = Output(run, origin, self.clock, self.request.command, self._note)
            self._opened(output)
            plan = self._plan(output)
            await self._judged(output, plan, chosen)
            return await self._told(output, plan, forced)

    def _refuse_existing(self, output: str) -> None:
        settings = self.request.settings
        if not (settings.overwrite or settings.resume_from_cache or settings.append):
            refuse_existing(RunPaths(Path(output)))

    def _checked(self) -> int:
        """Look at every row and answer before a server is started; return how many answers are selected."""
        check = JudgedPlan(
            lambda: source_texts(self.source.inputs, with_agents=self.source.with_agents),
            self.source.answers,
            self.routes,
            lambda _key: True,
            self.request.settings.limit,
        )
        refuse_unplanned(self.source.answers, self.source.planned(), self.source.inputs)
        selected = check.routed()
        self.source.refuse_unjudgeable(selected.within_limit)
        self.source.refuse_tools([server for server in self.routes.used if self.routes.is_over_mcp(server)])
        return selected.count

    async def _guarded(self) -> str | None:
        """Return which servers are forced, None where none needs to be."""
        if self.request.settings.judge_failed_only:
            self._note(_TWO_VERIFIERS)
            return None
        modes = await modes_of(self.deployment, self.routes.used)
        forced = unsafe_servers(modes, force=self.request.settings.force)
        if forced:
            self._note(_unvouched(forced))
        return forced

    def _note(self, text: str) -> None:
        self.notes.append(text)
        self.request.observe(RunNoted(text))

    def _opened(self, output: Output) -> None:
        settings = self.request.settings
        seeds = self.source.seeds
        exists = output.run.paths.manifest.exists() or bool(output.run.paths.existing())
        if exists and not settings.overwrite and (settings.resume_from_cache or settings.append):
            output.go_on(seeds=seeds)
        else:
            output.begin(seeds=seeds, retry_terminal_timeouts=settings.retry_terminal_timeouts)
        if self.source.results is not None and settings.judge_failed_only:
            with explained(output.run.paths):
                taken = output.take_over(self.source.results, self.source.answers)
            self._note(f"{taken} results were taken over as they were")

    def _plan(self, output: Output) -> JudgedPlan:
        return JudgedPlan(
            lambda: plan_texts(output.run.paths.materialized_inputs, output.manifest.plan.bytes),
            self.source.answers,
            self.routes,
            output.standings.owed_test(output.rules),
            self.request.settings.limit,
        )

    async def _judged(self, output: Output, plan: JudgedPlan, selected: int) -> None:
        observe = Guarded(self.request.observe)
        for text in self.routes.notes:
            self._note(text)
        left = sum(map(plan.is_owed, map(packed_key, plan.selected())))
        settled = settled_scores(output.standings, output.rules)
        observe(RunPlanned(output.standings.tasks(), selected, selected - left, *settled))
        if not left:
            observe(RunEnded())
            self._note("nothing is owed, and nothing was sent")
            return
        again = SENT_AGAIN if self._may_be_sent_again() else 0
        engine = Engine(
            output.rules,
            RunStamp(output.manifest.run_id, output.manifest.attempt_cap),
            VerifyTransport(self.deployment, self.clock, again),
            self.request.policy,
            observe,
            self.clock,
            self.stop,
            ceilings_of(self.request.collection, observe),
        )
        with judging_told():
            await collect(plan, output.run, output.standings, engine)

    def _may_be_sent_again(self) -> bool:
        settings = self.request.settings
        return settings.retry_for_s > 0 and not settings.force

    async def _told(self, output: Output, plan: JudgedPlan, forced: str | None) -> ReverificationResult:
        reading = await asyncio.to_thread(read_run, output.run.paths.output)
        metrics: list[JsonObject] = []
        if self.stop.why is None and not self.request.settings.disable_aggregation:
            metrics = await metrics_of(reading, self.routes, self.deployment, self._note)
        if forced:
            self._note(_unvouched(forced))
        standings, rules = reading.history.standings, output.rules_of(None)
        await asyncio.to_thread(write_counts, reading, rules, self.clock, metrics)
        is_owed = standings.owed_test(rules)
        keys = list(plan.selected())
        groups, _ = standings.counted(rules)
        before = self.source.before()
        return ReverificationResult(
            output=str(output.run.paths.output),
            selected=len(keys),
            left=sum(1 for key in keys if is_owed(packed_key(key))),
            coverage=standings.coverage(rules=rules),
            reward_sum=sum(group.rewards for group in groups),
            zeros=sum(group.zeros for group in groups),
            delta=reward_delta(self.source.answers.holds, before, standings, self.request.settings.changes_shown),
            files={name: str(path) for name, path in files_of(output.run.paths).items()},
            metrics=tuple(metrics),
            notes=tuple(self.notes),
            stopped=self.stop.why,
            run_id=output.manifest.run_id,
            headlines=dict(run_headlines(standings, rules)),
        )


def _unvouched(forced: str) -> str:
    return f"nobody vouches for these rewards: judged without their episodes by force: {forced}"
