"""Lanes over one shared iterator: each takes the next owed rollout and carries it until its ending is written.

Rules:
* No task per rollout and no list of futures: memory follows the lanes, and rollouts start in plan order.
* A stop ends admission at once. Work in flight has its grace, which a second request ends; what is still in flight then
  is cancelled and told to the ledger in one call. A run that stops returns as one that is through does.
* After a drain, work in flight takes as long as it needs.
* A lane that breaks ends the others, and so does a cancellation from outside: what was in flight is told as cut first.

Source: collection.md §3.1, §3.2, §3.7, §5.6.
"""

import logging
from collections.abc import Iterator
from typing import Final

from rollbook.clock import Clock
from rollbook.dispatch.budget import Spending
from rollbook.dispatch.carrying import Carrier, Jitter
from rollbook.dispatch.ceilings import Ceilings
from rollbook.dispatch.flights import Flights
from rollbook.dispatch.lanes import Lanes
from rollbook.dispatch.ledger_seam import Ledger
from rollbook.dispatch.loop_lag import LoopLag
from rollbook.dispatch.observing import Guarded
from rollbook.dispatch.outstanding import Outstanding
from rollbook.dispatch.policy import Dispatched, Policy
from rollbook.dispatch.stop import Stop
from rollbook.dispatch.supply import Supply
from rollbook.dispatch.traffic import Further, Traffic
from rollbook.dispatch.transport import Transport
from rollbook.dispatch.waiting import first_of, to_the_end
from rollbook.errors import LedgerError
from rollbook.outcomes.retry import spread
from rollbook.records.ending import Ending
from rollbook.records.event import Observe
from rollbook.records.task import Rollout

__all__ = ["Dispatched", "Dispatcher", "Policy"]
_LOG = logging.getLogger(__name__)
_FIRST_LANES: Final = 16


def always_of_use(_server: str, _ending: Ending) -> str | None:
    """Go on after every ending."""
    return None


class Dispatcher:
    """Carries the rollouts that `owed` yields through a transport into records; None in it stands for a pause.

    What steers a run while it goes on is `flights`, `ceilings`, `supply`, `lanes` and `lag`.
    """

    def __init__(
        self,
        transport: Transport,
        owed: Iterator[Rollout | None],
        *,
        ledger: Ledger,
        observe: Observe,
        policy: Policy,
        clock: Clock,
        stop: Stop,
        ceilings: Ceilings | None = None,
        further: Further = always_of_use,
        jitter: Jitter = spread,
    ) -> None:
        self.observe = Guarded(observe)
        self.stop = stop
        self.clock = clock
        self.flights = Flights(policy.limits, clock.monotonic)
        self.ceilings = ceilings or Ceilings(policy.lanes, auto=False)
        spending = None if policy.budget is None else Spending(policy.budget, clock.monotonic())
        self.supply = Supply(
            owed,
            stop,
            clock,
            self.ceilings,
            spending=spending,
            look_ahead=policy.look_ahead,
            whole_tasks=policy.whole_tasks,
            observe=self.observe,
        )
        self.lanes: Lanes | None = None
        self.lag = LoopLag(clock)
        self._busy = 0
        self.policy = policy
        self._outstanding = Outstanding(ledger)
        self._carrier = Carrier(
            transport,
            self._outstanding,
            self.flights,
            self.supply,
            Traffic(self.ceilings, self.supply, further, clock, spending),
            self.observe,
            policy,
            clock,
            stop,
            jitter,
        )

    async def run(self) -> Dispatched:
        """Run every rollout, or as many as a stop allows.

        Raises:
            UnroutedRunError: a `/run` failed and failures are not routed; what was in flight is cut.
            LedgerError: something could not be written.

        """
        lanes = self.lanes = Lanes(min(_FIRST_LANES, self.lanes_wanted), self._lane)
        try:
            await self._watch(lanes)
        except BaseException as error:
            await to_the_end(self._close(lanes, error))
            raise
        cut = await to_the_end(self._close(lanes, None))
        if lanes.error is not None:
            raise lanes.error
        return Dispatched(self.stop.why, cut)

    @property
    def lanes_wanted(self) -> int:
        """As many lanes as rollouts may be in flight."""
        return self.ceilings.limit or self.policy.lanes

    def adjust(self) -> None:
        """Have what the ceilings say now come into force."""
        self._have_one_free()
        self.supply.has_changed()

    async def _lane(self) -> None:
        while (rollout := await self.supply.take()) is not None:
            self._busy += 1
            self._have_one_free()
            try:
                await self._carrier.carry(rollout)
            finally:
                self._busy -= 1

    def _have_one_free(self) -> None:
        """Add lanes while there is work for all there are: a limit may be far beyond what is ever in flight."""
        if self.lanes is not None and self._busy == len(self.lanes):
            self.lanes.grow_to(min(self.lanes_wanted, 2 * self._busy))

    async def _watch(self, lanes: Lanes) -> None:
        """Return when the lanes are over, or have had their grace."""
        await first_of(lanes.over.wait(), self.stop.asked.wait())
        if not lanes.over.is_set():
            await first_of(lanes.over.wait(), self.stop.at_once.wait(), self.clock.sleep(self.policy.grace))

    async def _close(self, lanes: Lanes, interrupted: BaseException | None) -> int:
        """End the lanes, tell the ledger what that cut, and return how many attempts it did."""
        await lanes.end()
        error = lanes.error or interrupted
        why = _said(error) if error is not None else self.stop.why
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
