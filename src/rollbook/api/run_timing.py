"""The timing table of a run: the public report, and what feeds and shows it while rollouts are collected.

Rules:
* A rollout starts once, however often it is sent again.
* The table is told at the end, when the run is asked to stop, and every so often where that was asked for; never as an
  error.

Source: collection.md §5.6, §7.4.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Final

from rollbook.clock import Clock, SystemClock
from rollbook.config.collection import RolloutCollectionConfig
from rollbook.dispatch.stop import Stop
from rollbook.records.ending import Ending
from rollbook.records.event import AttemptCut, AttemptEnded, AttemptRefused, AttemptStarted, Event
from rollbook.records.identity import RolloutKey
from rollbook.records.outcome import Failed, Result
from rollbook.scoring.run_timing import TIMEOUT_KINDS, RunTiming, TimingBounds, tells_of_timeout, timing_lines

_TIMEOUTS: Final = b'"timeouts"'


class RunTimingReport:
    """Health table for a collection whose rollouts have a wall-clock limit of their own.

    All times are in seconds, fractions are shares from 0 to 1, None leaves a row out. Informative: it stops nothing.
    """

    def __init__(  # noqa: PLR0917  the field's signature
        self,
        total: int,
        start_within_s: float,
        start_min_fraction: float,
        all_started_within_s: float | None,
        long_rollout_s: float | None,
        long_rollout_max_fraction: float,
        timed_out_max_fraction: float,
        max_waiting_ratio: float | None = None,
        *,
        clock: Clock | None = None,
    ) -> None:
        self._clock = clock or SystemClock()
        bounds = TimingBounds(
            start_within_s,
            start_min_fraction,
            all_started_within_s,
            long_rollout_s,
            long_rollout_max_fraction,
            timed_out_max_fraction,
            max_waiting_ratio,
        )
        self.timing = RunTiming(total, bounds, self._clock.monotonic())

    def record_start(self, now: float) -> None:
        """Note that a rollout started at `now`, in monotonic seconds."""
        self.timing.start(now)

    def record_result(self, result: Mapping[str, object], seconds: float) -> None:
        """Note that a rollout ended with `result` (or with the row of its failure) after `seconds`."""
        self.timing.end(seconds, timed_out=tells_of_timeout(result))

    def record_queue(self, waiting: float, running: float) -> None:
        """Note one sample of requests waiting and running, summed over every server."""
        self.timing.queue(waiting, running)

    def table(self) -> str:
        """Return the table as it is now, with a warning for each row that is outside its bound."""
        return "\n".join(timing_lines(self.timing.rows(self._clock.monotonic())))


def report_for(settings: RolloutCollectionConfig, total: int, clock: Clock) -> RunTimingReport | None:
    """Return the report that `settings` ask for on `total` rollouts, None where they ask for none."""
    if settings.dispatch_start_report_within_s is None:
        return None
    return RunTimingReport(
        total,
        settings.dispatch_start_report_within_s,
        settings.dispatch_start_report_min_fraction,
        settings.dispatch_all_started_within_s,
        settings.long_rollout_s,
        settings.long_rollout_max_fraction,
        settings.timed_out_max_fraction,
        settings.server_queue_max_waiting_ratio if settings.server_queue_metrics_urls else None,
        clock=clock,
    )


class TimedRun:
    """A report that is fed by what is seen of a run, and told through `tell`, line by line."""

    def __init__(self, report: RunTimingReport, tell: Callable[[str], None]) -> None:
        self.report = report
        self._tell = tell
        self._again: set[RolloutKey] = set()

    def observe(self, event: Event) -> None:
        """Take in one event."""
        if isinstance(event, AttemptStarted):
            if event.key in self._again:
                self._again.discard(event.key)
            else:
                self.report.record_start(event.at)
        elif isinstance(event, AttemptRefused | AttemptCut):
            self._again.add(event.key)
        elif isinstance(event, AttemptEnded):
            self._ended(event)

    def _ended(self, event: AttemptEnded) -> None:
        outcome = event.record.outcome
        if isinstance(outcome, Failed):
            by_limit = outcome.kind in TIMEOUT_KINDS or outcome.failure_class in TIMEOUT_KINDS
            self.report.timing.end(event.elapsed, timed_out=by_limit)
        elif isinstance(outcome, Result):
            self.report.timing.end(event.elapsed, timed_out=False)

    def replied(self, ending: Ending) -> None:
        """Note what a result says of timeouts, which its record does not keep."""
        is_silent = ending.kept is not None and _TIMEOUTS not in ending.kept
        if not is_silent and isinstance(ending.outcome, Result) and tells_of_timeout(ending.fields()):
            self.report.timing.ran_into_limit()

    def tell(self) -> None:
        """Tell the table as it is now."""
        for line in self.report.table().splitlines():
            self._tell(line)

    @asynccontextmanager
    async def told(self, interval: float | None, stop: Stop, clock: Clock) -> AsyncIterator[None]:
        """Tell the table every `interval` seconds while the block runs, when the run is to stop, and at the end."""
        telling = [asyncio.create_task(self._told_on_stop(stop))]
        if interval is not None:
            telling.append(asyncio.create_task(self._told_every(interval, clock)))
        try:
            yield
        finally:
            for task in telling:
                task.cancel()
            await asyncio.gather(*telling, return_exceptions=True)
            self.tell()

    async def _told_on_stop(self, stop: Stop) -> None:
        await stop.asked.wait()
        self.tell()

    async def _told_every(self, interval: float, clock: Clock) -> None:
        while True:
            await clock.sleep(interval)
            self.tell()
