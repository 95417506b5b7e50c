"""Lanes over one shared iterator: each takes the next owed rollout and carries it until its ending is written.

Rules:
* No task per rollout and no list of futures: memory follows the lanes, and rollouts start in plan order.
* A stop ends admission at once. Work in flight has its grace, which a second request ends; what is still in flight then
  is cancelled and told to the ledger in one call. A run that stops returns as one that is through does.
* A lane that breaks ends the others, and so does a cancellation from outside: what was in flight is told as cut first.

Source: collection.md §3.1, §3.2, §3.7, §5.6.
"""

import logging
from collections.abc import Iterator

from rollbook.clock import Clock
from rollbook.dispatch.carrying import Carrier, Jitter
from rollbook.dispatch.lanes import Lanes
from rollbook.dispatch.ledger_seam import Ledger
from rollbook.dispatch.observing import Guarded
from rollbook.dispatch.outstanding import Outstanding
from rollbook.dispatch.policy import Dispatched, Policy
from rollbook.dispatch.stop import Stop
from rollbook.dispatch.supply import Supply
from rollbook.dispatch.transport import Transport
from rollbook.dispatch.waiting import first_of, to_the_end
from rollbook.errors import LedgerError
from rollbook.outcomes.retry import spread
from rollbook.records.event import Observe
from rollbook.records.task import Rollout

__all__ = ["Dispatched", "Dispatcher", "Policy"]
_LOG = logging.getLogger(__name__)


class Dispatcher:
    """Carries owed rollouts through a transport into records. One serves one `run`."""

    def __init__(
        self,
        transport: Transport,
        *,
        ledger: Ledger,
        observe: Observe,
        policy: Policy,
        clock: Clock,
        stop: Stop,
        jitter: Jitter = spread,
    ) -> None:
        self._outstanding = Outstanding(ledger)
        self._carrier = Carrier(transport, self._outstanding, Guarded(observe), policy, clock, stop, jitter)
        self._policy = policy
        self._clock = clock
        self._stop = stop

    async def run(self, owed: Iterator[Rollout | None]) -> Dispatched:
        """Run every rollout that `owed` yields, or as many as a stop allows; None stands for a pause.

        Raises:
            UnroutedRunError: a `/run` failed and failures are not routed; what was in flight is cut.
            LedgerError: something could not be written.

        """
        supply = Supply(owed, self._stop, self._clock)
        lanes = Lanes(self._policy.lanes, lambda: self._lane(supply))
        try:
            await self._watch(lanes)
        except BaseException as error:
            await to_the_end(self._close(lanes, error))
            raise
        cut = await to_the_end(self._close(lanes, None))
        if lanes.error is not None:
            raise lanes.error
        return Dispatched(self._stop.why, cut)

    async def _lane(self, supply: Supply) -> None:
        while (rollout := await supply.take()) is not None:
            await self._carrier.carry(rollout)

    async def _watch(self, lanes: Lanes) -> None:
        """Return when the lanes are over, or have had their grace."""
        await first_of(lanes.over.wait(), self._stop.asked.wait())
        if not lanes.over.is_set():
            await first_of(lanes.over.wait(), self._stop.at_once.wait(), self._clock.sleep(self._policy.grace))

    async def _close(self, lanes: Lanes, interrupted: BaseException | None) -> int:
        """End the lanes, tell the ledger what that cut, and return how many attempts it did."""
        await lanes.end()
        error = lanes.error or interrupted
        why = _said(error) if error is not None else self._stop.why
        if why is None:
            return 0
        try:
            return await self._outstanding.close(why)
        except LedgerError:
            if error is None:
                raise
            _LOG.error("the ledger was not told what was cut when the run ended: %s", why)
            return 0


def _said(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
