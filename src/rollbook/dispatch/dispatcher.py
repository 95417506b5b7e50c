"""Lanes over one shared iterator: each takes the next owed rollout, sends it, and hands its ending to be written.

Rules:
* No task per rollout and no list of futures: memory follows the lanes, and rollouts start in plan order.
* An ending is observed after it was written. An observer that raises is logged and left out, and the run goes on.
* Cancellation may interrupt a wait for a reply, never a write.

Source: collection.md §3.1, §3.2, §3.7.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass

from rollbook.clock import Clock
from rollbook.dispatch.observing import Guarded
from rollbook.dispatch.transport import Transport
from rollbook.errors import UnroutedRunError
from rollbook.outcomes.classify import cause_of, ending_of_reply, ending_of_send_failure, request_body
from rollbook.outcomes.verdict import as_evidence, ends_the_run
from rollbook.records.ending import Ending
from rollbook.records.event import AttemptEnded, AttemptStarted, Observe
from rollbook.records.exchange import SendFailed
from rollbook.records.record import Record
from rollbook.records.task import Rollout

Write = Callable[[Rollout, Ending], Awaitable[Record]]


@dataclass(frozen=True, slots=True)
class Policy:
    """How a run is driven: `lanes` rollouts in flight at most; `route_failures` keeps going past a failed `/run`."""

    lanes: int
    route_failures: bool = True


class Dispatcher:
    """Carries owed rollouts through a transport into records."""

    def __init__(self, transport: Transport, *, write: Write, observe: Observe, policy: Policy, clock: Clock) -> None:
        self._transport = transport
        self._write = write
        self._observe = Guarded(observe)
        self._policy = policy
        self._clock = clock

    async def run(self, owed: Iterator[Rollout]) -> None:
        """Run every rollout that `owed` yields.

        Raises:
            UnroutedRunError: a `/run` failed and failures are not routed; what was in flight is cancelled.
            LedgerError: an ending could not be written.

        """
        lanes = [asyncio.create_task(self._lane(owed)) for _ in range(self._policy.lanes)]
        try:
            await asyncio.gather(*lanes)
        finally:
            for lane in lanes:
                lane.cancel()
            await asyncio.gather(*lanes, return_exceptions=True)

    async def _lane(self, owed: Iterator[Rollout]) -> None:
        for rollout in owed:
            await self._attempt(rollout)

    async def _attempt(self, rollout: Rollout) -> None:
        started = self._clock.monotonic()
        self._observe(AttemptStarted(rollout.key, rollout.attempt, started))
        ending = await self._exchange(rollout)
        stop = ends_the_run(ending, route_failures=self._policy.route_failures)
        saved = as_evidence(ending) if stop else ending
        record = await asyncio.shield(self._write(rollout, saved))
        ended = self._clock.monotonic()
        self._observe(AttemptEnded(record, ended - started, ended, cause_of(ending)))
        if stop:
            raise UnroutedRunError(_stop_message(rollout, ending))

    async def _exchange(self, rollout: Rollout) -> Ending:
        try:
            reply = await self._transport.send(rollout.server, "/run", request_body(rollout))
        except SendFailed as failure:
            return ending_of_send_failure(failure)
        return ending_of_reply(reply, rollout)


def _stop_message(rollout: Rollout, ending: Ending) -> str:
    return (
        f"/run of rollout {rollout.key} failed on {rollout.server}: {getattr(ending.outcome, 'message', '')}. "
        "The run ends at the first failed /run; set +route_failures_to_sidecar=true to save failures and go on"
    )
