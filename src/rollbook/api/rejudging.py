"""What a judge owes a run, judged for the run itself: its lock, its manifest, its files.

Rules:
* The run is claimed first, and every file of it is sound or nothing is sent.
* A judging that an earlier session admitted and whose row is there is never asked for again; one whose row is missing
  is asked for under the admission that it has.
* A folder without a manifest is adopted: its rows are taken as they are.

Source: collection.md §5.4.6, §5.4.7, §9.1.
"""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from uuid import uuid4

from msgspec.structs import replace
from pydantic import ValidationError

from rollbook.api.options import ceilings_of
from rollbook.api.provenance import session_entry
from rollbook.api.request import ServeMode
from rollbook.api.reverify_metrics import metrics_of, write_counts
from rollbook.api.reverify_output import sound_history
from rollbook.api.reverify_request import (
    ReverificationRequest,
    ReverificationResult,
    cap_of_new_runs,
    judging_told,
)
from rollbook.api.settled import settled_scores
from rollbook.clock import Clock, timestamp
from rollbook.dispatch.dispatcher import Dispatcher
from rollbook.dispatch.observing import Guarded
from rollbook.dispatch.stop import Stop
from rollbook.dispatch.watch import watched
from rollbook.errors import ConfigError, LedgerError
from rollbook.ledger.digests import sha256_of
from rollbook.ledger.history import History
from rollbook.ledger.manifest_store import write_manifest
from rollbook.ledger.ownership import resolve_rollout_owner, resolve_rollout_path
from rollbook.ledger.paths import RunPaths
from rollbook.ledger.rejudgment import open_among
from rollbook.ledger.run import Run, explained, files_of
from rollbook.ledger.writer import Durability
from rollbook.records.codec import RunStamp
from rollbook.records.disposition import Rules
from rollbook.records.event import RunEnded, RunNoted, RunPlanned
from rollbook.records.json_values import JsonObject
from rollbook.records.manifest import PlanDigest, RunManifest
from rollbook.records.rejudgment import RejudgeAdmission
from rollbook.records.reward_delta import reward_delta
from rollbook.records.task import Rollout
from rollbook.scoring.run_headlines import run_headlines
from rollbook.servers.serving.deployment import Deployment
from rollbook.verbs.reverify_answers import refuse_several_stages
from rollbook.verbs.reverify_plan import JudgedPlan, plan_texts
from rollbook.verbs.reverify_rejudge import Admissions, Rejudgeable, RejudgeLedger, admitted
from rollbook.verbs.reverify_routes import VerifyRoutes
from rollbook.verbs.reverify_sending import SENT_AGAIN, VerifyTransport
from rollbook.verbs.session_ledger import SessionLedger
from rollbook.verbs.status import read_run

_ADOPTED: Final = (
    "what a judge had failed on was judged before any manifest was there; how it was collected is not known"
)
_TWO_VERIFIERS: Final = (
    "the run's rewards come from two configurations of the verifier: what it holds already stays as it is, and only "
    "what a judge owed is judged now"
)


async def rejudge(
    request: ReverificationRequest, deployment: Deployment, clock: Clock, stop: Stop
) -> ReverificationResult:
    """Judge what a judge owes the run that the request names, and append what comes back. Raises as `reverify` does."""
    output = Path(request.settings.output_jsonl_fpath)
    path = resolve_rollout_path(resolve_rollout_owner(output))
    settings = request.settings
    run = Run(RunPaths(path), clock, durability=Durability(settings.durability), take_over=settings.take_over)
    with run.claimed():
        rejudging = _Rejudging(request, run, deployment, clock, stop)
        rejudging.look()
        return await rejudging.carried_out()


@dataclass(slots=True)
class _Rejudging:
    """One session of a run in which nothing but answers is sent, to be judged."""

    request: ReverificationRequest
    run: Run
    deployment: Deployment
    clock: Clock
    stop: Stop
    notes: list[str] = field(default_factory=list)
    history: History = field(init=False)
    manifest: RunManifest = field(init=False)
    owed: Rejudgeable = field(init=False)
    routes: VerifyRoutes = field(init=False)

    def look(self) -> None:
        """Fold the run, and find what a judge owes it; the files are mended, and nothing else is written."""
        settings = self.request.settings
        if not self.run.paths.materialized_inputs.exists():
            raise ConfigError(f"{self.run.paths.materialized_inputs}: the run's plan is missing; restore it")
        self.history = sound_history(self.run, self._note)
        self.manifest = self.history.manifest or self._adopted()
        self.owed = Rejudgeable(
            self.run.paths,
            self.history.standings,
            self.rules(None),
            with_invalid=settings.retry_invalid_judge_responses,
        )
        refuse_several_stages(self.run.paths)
        self.owed.look()
        for why, count in sorted(self.owed.left_out.items()):
            self._note(f"{count} rollouts that a judge owes {why}, and are left as they are")
        self.routes = VerifyRoutes(self.deployment.global_config_dict)
        self._plan().routed()

    def rules(self, live_session: int | None) -> Rules:
        """Return what decides where rollouts stand."""
        manifest = self.manifest
        return Rules(
            cap=manifest.attempt_cap,
            retry_terminal_timeouts=manifest.retry_terminal_timeouts or self.request.settings.retry_terminal_timeouts,
            rerun_masked=manifest.rerun_masked,
            released=manifest.released,
            group_scored=manifest.group_scored,
            live_session=live_session,
        )

    def _adopted(self) -> RunManifest:
        plan, named = self.run.paths.materialized_inputs, [name for name in self.history.run_ids if name is not None]
        digest = PlanDigest(sha256=sha256_of(plan), bytes=plan.stat().st_size, rollouts=self.history.plan.rollouts)
        return RunManifest(
            run_id=named[0] if named else uuid4().hex,
            created_at=timestamp(self.clock.now()),
            output=self.run.paths.output.name,
            plan=digest,
            max_rollout_attempts=cap_of_new_runs(),
            adopted=True,
            unreserved=self.history.standings.unreserved,
            not_resumable=_ADOPTED,
        )

    def _note(self, text: str) -> None:
        self.notes.append(text)
        self.request.observe(RunNoted(text))

    def _plan(self) -> JudgedPlan:
        size = self.manifest.plan.bytes
        return JudgedPlan(
            lambda: plan_texts(self.run.paths.materialized_inputs, size),
            self.owed,
            self.routes,
            lambda _key: True,
            self.request.settings.limit,
        )

    async def carried_out(self) -> ReverificationResult:
        """Judge, then tell what changed."""
        selected = sum(1 for _ in self._plan().selected())
        observe = Guarded(self.request.observe)
        standings = self.history.standings
        settled = settled_scores(standings, self.rules(None), self.owed.holds)
        observe(RunPlanned(standings.tasks(), selected, 0, *settled))
        before = await asyncio.to_thread(read_run, self.run.paths.output)
        if selected:
            self._note(_TWO_VERIFIERS)
            if self.request.serve is not ServeMode.NONE:
                await self.deployment.start()
            await self._judged(observe)
        else:
            if self.manifest.pending_rejudges:
                self._save(tuple(self._still_open().values()))
            self._note("a judge owes this run nothing that can be judged again; nothing was sent")
        observe(RunEnded())
        return await self._told(before.history, selected)

    async def _judged(self, observe: Guarded) -> None:
        number = max(self.manifest.session, self.history.log.session) + 1
        entry = session_entry(number, self.request.command, self.clock)
        self.manifest = replace(self.manifest, sessions=(*self.manifest.sessions, entry))
        admissions = Admissions(uuid4().hex, timestamp(self.clock.now()), self._save, self._still_open())
        admissions.settle()
        self.run.forget_metrics()
        stamp = RunStamp(self.manifest.run_id, self.manifest.attempt_cap)
        standings = self.history.standings
        async with self.run.writer(stamp) as writer:
            session = SessionLedger(writer, standings, self.manifest.run_id, number, self.clock)
            try:
                async with session.opened():
                    ledger = RejudgeLedger(writer, standings, admissions)
                    rollouts = admitted(iter(self._plan()), self.owed, admissions)
                    dispatcher = self._dispatcher(rollouts, ledger, observe)
                    with judging_told():
                        async with watched(dispatcher):
                            await dispatcher.run()
            finally:
                admissions.settle()

    def _dispatcher(self, rollouts: Iterator[Rollout | None], ledger: RejudgeLedger, observe: Guarded) -> Dispatcher:
        again = SENT_AGAIN if self.request.settings.retry_for_s > 0 else 0
        return Dispatcher(
            VerifyTransport(self.deployment, self.clock, again),
            rollouts,
            ledger=ledger,
            observe=observe,
            policy=self.request.policy,
            clock=self.clock,
            stop=self.stop,
            ceilings=ceilings_of(self.request.collection, observe),
        )

    def _still_open(self) -> dict[tuple[str, int], RejudgeAdmission]:
        """Return the admissions that no row closes, of answers that a judge still owes: the others came to nothing."""
        try:
            admitted_before = [RejudgeAdmission.model_validate(one) for one in self.manifest.pending_rejudges]
        except ValidationError as error:
            raise LedgerError(f"{self.run.paths.manifest}: pending_rejudges: {error.errors()[0]['msg']}") from None
        left = open_among(admitted_before, self.run.paths.failures, self.run.paths.output)
        return {who: one for who, one in left.items() if who in self.owed.identities}

    def _save(self, admissions: Sequence[RejudgeAdmission]) -> None:
        dumped = tuple(one.model_dump(mode="json") for one in admissions)
        self.manifest = replace(self.manifest, pending_rejudges=dumped)
        with explained(self.run.paths, self.run.paths.manifest):
            write_manifest(self.run.paths.manifest, self.manifest)

    async def _told(self, before: History, selected: int) -> ReverificationResult:
        reading = await asyncio.to_thread(read_run, self.run.paths.output)
        standings, rules, settings = reading.history.standings, self.rules(None), self.request.settings
        metrics: list[JsonObject] = []
        if selected and self.stop.why is None and not settings.disable_aggregation:
            metrics = await metrics_of(reading, self.routes, self.deployment, self._note)
        if selected:
            await asyncio.to_thread(write_counts, reading, rules, self.clock, metrics)
        left = Rejudgeable(self.run.paths, standings, rules, with_invalid=settings.retry_invalid_judge_responses)
        left.look()
        groups, _ = standings.counted(rules)
        return ReverificationResult(
            output=str(self.run.paths.output),
            selected=selected,
            left=len(left.owed),
            coverage=standings.coverage(rules=rules),
            reward_sum=sum(group.rewards for group in groups),
            zeros=sum(group.zeros for group in groups),
            delta=reward_delta(self.owed.holds, before.standings, standings, settings.changes_shown),
            files={name: str(path) for name, path in files_of(self.run.paths).items()},
            metrics=tuple(metrics),
            notes=tuple(self.notes),
            stopped=self.stop.why,
            run_id=self.manifest.run_id,
            headlines=dict(run_headlines(standings, rules)),
            left_out=dict(self.owed.left_out),
        )
