"""The collecting step of an evaluation: what drives the rollouts that are owed, and whoever looks on or steers.

Rules:
* Settings become the engine's values here, and nothing is decided.
* Who looks on has a guard of its own: one that fails takes no other along, and never the run.
* A driver of the settings takes the engine's place, and what it left on disk is what counts.

Source: collection.md §3, §6.8, §7.4, §10.1, §15.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final

from rollbook.api.driver import drive
from rollbook.api.options import ceilings_of, most_asked_for, policy_of, told_limits
from rollbook.api.ordered_plan import OrderedPlan
from rollbook.api.run_timing import TimedRun, report_for
from rollbook.api.session import Session
from rollbook.config.collection import RolloutCollectionConfig
from rollbook.dispatch.ceilings import Ceilings
from rollbook.dispatch.dispatcher import Dispatcher
from rollbook.dispatch.loop_lag import LoopLag
from rollbook.dispatch.observing import Guarded
from rollbook.dispatch.steering import Steering
from rollbook.dispatch.stop import Stop
from rollbook.outcomes.early_stop import EarlyStop, EarlyStops
from rollbook.records.codec import RunStamp
from rollbook.records.ending import Ending
from rollbook.records.event import ConcurrencyChanged, Event, Observe, RunNoted, RunRead, both
from rollbook.records.group_count import GroupCount, coverage_of
from rollbook.servers.serving.queue_metrics import Queues
from rollbook.servers.serving.queue_sampling import sample_queues
from rollbook.telemetry.before import before
from rollbook.telemetry.counted import Counted
from rollbook.telemetry.guarded import GuardedSink
from rollbook.telemetry.pace import Pace
from rollbook.telemetry.sink import Sink
from rollbook.verbs.collect import Engine, collect
from rollbook.verbs.control import served

_SOON: Final = 5.0


class Collecting:
    """One session's rollouts. `early` is why they ended before the plan did, `pace` how fast they went."""

    def __init__(self, session: Session, observe: Observe, stop: Stop) -> None:
        settings = session.request.settings
        self.early: EarlyStop | None = None
        self.pace = Pace()
        self._ceilings: Ceilings | None = None
        self._began: ConcurrencyChanged | None = None
        self._lag: LoopLag | None = None
        self._owed = 0
        self._floor = 1
        self._timed: TimedRun | None = None
        self._session = session
        self._observe = both(observe, self.pace.observe)
        self._stop = stop
        self._early_stops = EarlyStops(
            violations=settings.environment_protocol_violation_stop_after, failures=settings.stop_after_failures
        )

    @property
    def concurrency(self) -> tuple[ConcurrencyChanged, ...]:
        """How many rollouts were let be in flight, and since when: what it began with comes first."""
        return () if self._ceilings is None or self._began is None else (self._began, *self._ceilings.history)

    @property
    def loop_lag(self) -> float | None:
        """The event loop's lag while rollouts were collected, p99 in seconds; None when that took less than 2 s."""
        return None if self._lag is None else self._lag.p99_of_all

    def observe(self, event: Event) -> None:
        """Tell whoever looks on."""
        self._observe(event)

    @asynccontextmanager
    async def counted(self, groups: Sequence[GroupCount], sink: Sink | None) -> AsyncIterator[None]:
        """Let `sink` hear what is counted while the block runs; `groups` are what stands before."""
        if sink is None:
            yield
            return
        guarded = GuardedSink(sink)
        session = self._session
        known = await asyncio.to_thread(before, session.standings, groups, session.rules)
        self._observe = both(self._observe, Guarded(Counted(guarded, known)))
        try:
            yield
        finally:
            await asyncio.to_thread(guarded.close)

    async def run(self, owed: int) -> None:
        """Collect the `owed` rollouts of the plan. Raises what dispatch does, and what a driver does."""
        self._owed = owed
        session, settings = self._session, self._session.request.settings
        if settings.rollout_collection_driver is not None:
            await drive(session, self._stop)
            self._observe(_read(session))
            return
        self._timed = self._timed_run()
        together = session.manifest.group_scored
        several = session.names_several_servers() and not together
        policy = policy_of(settings, several_servers=several, whole_tasks=together)
        largest = session.standings.largest_task() if together else None
        self._floor = 1 if largest is None else largest[1]
        self._ceilings = ceilings_of(settings, self._observe, floor=self._floor)
        self._observe(RunNoted(told_limits(policy.limits)))
        self._began = ConcurrencyChanged(self._ceilings.limit or policy.lanes, "start", session.clock.monotonic())
        if not settings.adaptive_concurrency:
            self._observe(self._began)
        engine = Engine(
            session.rules,
            RunStamp(session.manifest.run_id, session.manifest.attempt_cap),
            session.deployment,
            policy,
            self._observe,
            session.clock,
            self._stop,
            self._ceilings,
            self._further,
            self._steered,
        )
        await collect(OrderedPlan(session), session.run, session.standings, engine)

    def _timed_run(self) -> TimedRun | None:
        """Return what keeps the timing table, where one is asked for; it looks on from now on."""
        report = report_for(self._session.request.settings, self._owed, self._session.clock)
        if report is None:
            return None
        tell = self._observe
        timed = TimedRun(report, lambda text: tell(RunNoted(text)))
        self._observe = both(self._observe, Guarded(timed.observe))
        return timed

    def _further(self, server: str, ending: Ending) -> str | None:
        """Return why the run stops after `ending`, if it does."""
        if self._timed is not None:
            self._timed.replied(ending)
        found = self._early_stops.observe(server, ending)
        self.early = found or self.early
        return None if found is None else found.why

    @asynccontextmanager
    async def _steered(self, dispatcher: Dispatcher) -> AsyncIterator[None]:
        """Let other processes steer the run, and the model servers' queues be heard, while it goes on."""
        clock, paths = self._session.clock, self._session.run.paths
        self._lag = dispatcher.lag
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(
                served(paths, self._steering(dispatcher), lambda text: self._observe(RunNoted(text)), clock)
            )
            if self._timed is not None:
                interval = self._session.request.settings.timing_summary_interval_s
                await stack.enter_async_context(self._timed.told(interval, self._stop, clock))
            await stack.enter_async_context(self._queues_heard(dispatcher.ceilings))
            yield

    def _steering(self, dispatcher: Dispatcher) -> Steering:
        return Steering(
            dispatcher,
            self._owed,
            lambda: self.pace.ended,
            self._floor,
            again=lambda: len(self.pace.again),
            hard=most_asked_for(self._session.request.settings),
        )

    @asynccontextmanager
    async def _queues_heard(self, ceilings: Ceilings) -> AsyncIterator[None]:
        settings, clock = self._session.request.settings, self._session.clock
        if not settings.server_queue_metrics_urls:
            yield
            return

        def heard(queues: Queues) -> None:
            ceilings.heard(queues, clock.monotonic())
            if self._timed is not None:
                self._timed.report.record_queue(*queues)

        sampling = asyncio.create_task(
            sample_queues(
                settings.server_queue_metrics_urls,
                _sampled_every(settings),
                clock,
                heard,
            )
        )
        try:
            yield
        finally:
            sampling.cancel()
            await asyncio.gather(sampling, return_exceptions=True)


def _read(session: Session) -> RunRead:
    groups, unplanned = session.standings.counted(session.rules_of(None))
    rewards, zeros = sum(group.rewards for group in groups), sum(group.zeros for group in groups)
    return RunRead(coverage_of(groups, unplanned=unplanned), rewards, zeros)


def _sampled_every(settings: RolloutCollectionConfig) -> float:
    """Return the seconds between two looks at queues; where concurrency follows them, two are to come soon."""
    interval = settings.server_queue_sample_interval_s
    return min(interval, _SOON) if settings.adaptive_concurrency else interval
