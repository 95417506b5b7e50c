"""One row, sent: the slot that it holds, the time that is left for it, and the sends that its attempt takes.

Rules:
* The slot is held before the time is looked at, so that a row which waited for it sees what is truly left.
* Nothing is sent of which the outcome could not be kept.
* All sends are of one attempt. Another is made only where no reply was begun and the last may have been lost on the
  way, and as often as the caller allows; a reply, whatever its status, ends it.

Source: collection.md §3.2, §3.5, §3.6.
"""

import logging
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Final

from rollbook.api.direct_rows import DirectRow
from rollbook.clock import Clock
from rollbook.dispatch.completion_budget import DispatchBudget
from rollbook.dispatch.transport import Transport
from rollbook.records.exchange import Exchange, Reply, SendFailed
from rollbook.records.failure_kinds import Delivery
from rollbook.records.sends import Sends

_LOG = logging.getLogger(__name__)
MOST_SENDS: Final = 3
"""How often one attempt is sent at most."""
_PAUSE_SECONDS: Final = 0.5


@dataclass(frozen=True, slots=True)
class Answered:
    """A reply, whatever its status, and the seconds from the first send to its last byte."""

    reply: Reply
    seconds: float


@dataclass(frozen=True, slots=True)
class Refused:
    """A row that was not sent, and why."""

    reason: str


Answer = Answered | Refused | SendFailed


@dataclass(frozen=True, slots=True)
class Sending:
    """What the rows of one call share on their way out. `ready` raises where a row need not be sent any more."""

    transport: Transport
    clock: Clock
    budget: DispatchBudget
    slots: AbstractAsyncContextManager[Any] | None = None
    most_sends: int = 1
    ready: Callable[[], Awaitable[None]] | None = None

    async def answer(self, row: DirectRow, sends: Sends) -> Answer:
        """Send `row` once a slot is free and while there is time; `sends` is told of each send."""
        async with self.slots or nullcontext():
            refused = self.budget.refusal(self.clock.monotonic())
            if refused is not None:
                self.budget.tracker.record_drained()
                return Refused(refused)
            if self.ready is not None:
                await self.ready()
            began = self.clock.monotonic()
            while True:
                try:
                    reply = await self._sent(row, sends)
                except SendFailed as failure:
                    sends.failures.append(failure)
                    if not self._again(failure, sends):
                        return failure
                    _LOG.warning("/run of %s is sent again: %s", row.name, failure.message)
                    await self.clock.sleep(_PAUSE_SECONDS)
                else:
                    return Answered(reply, self.clock.monotonic() - began)

    async def _sent(self, row: DirectRow, sends: Sends) -> Reply:
        sends.exchanges.append(Exchange(self.clock.monotonic))
        return await self.transport.send(row.rollout.server, "/run", row.body, sends.exchanges[-1])

    def _again(self, failure: SendFailed, sends: Sends) -> bool:
        may_help = failure.delivery is Delivery.POSSIBLY_DELIVERED and failure.status is None
        return may_help and len(sends.exchanges) < self.most_sends
