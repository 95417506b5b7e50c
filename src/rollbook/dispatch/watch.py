"""What is done by the clock while a run goes on: limits, ceilings, signs of a stall.

Rules:
* One task for the whole run. What it costs grows with what is in flight, and not with the plan.
* It ends with the run, and takes nothing with it.

Source: collection.md §3.2, §19; cases RC-37, RC-40.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Final

from rollbook.dispatch.dispatcher import Dispatcher
from rollbook.records.event import Admission, AdmissionChanged, RunNoted

SWEEP_SECONDS: Final = 0.25
STALLED_SECONDS: Final = 30.0
_LONG_HOLD: Final = 5.0


@asynccontextmanager
async def watched(dispatcher: Dispatcher) -> AsyncIterator[None]:
    """Watch `dispatcher` while the block runs."""
    tasks = [asyncio.create_task(work) for work in (watch(dispatcher), dispatcher.lag.watch())]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def watch(dispatcher: Dispatcher) -> None:
    """Look over the flights of `dispatcher` and at its ceilings four times a second, until cancelled."""
    clock, holds, admission = dispatcher.clock, _Holds(), Admission.OPEN
    while True:
        await clock.sleep(SWEEP_SECONDS)
        dispatcher.flights.sweep()
        stalled = dispatcher.flights.stalled(STALLED_SECONDS)
        if stalled is not None:
            dispatcher.observe(stalled)
        before, admission = admission, admission_of(dispatcher)
        if admission is not before:
            dispatcher.observe(AdmissionChanged(admission))
        for held in holds.told(dispatcher):
            dispatcher.observe(RunNoted(held))
        dispatcher.ceilings.tick(clock.monotonic(), dispatcher.lag.p99)
        dispatcher.adjust()


def admission_of(dispatcher: Dispatcher) -> Admission:
    """Return whether `dispatcher` sends anything now."""
    if dispatcher.stop.asked.is_set():
        return Admission.STOPPING
    if dispatcher.stop.closed.is_set():
        return Admission.DRAINING
    return Admission.PAUSED if dispatcher.supply.paused else Admission.OPEN


class _Holds:
    """Which servers it was told of that they are left alone: once each, and again when it is for longer.

    How many wait meanwhile, and what they met, is told with the progress.
    """

    def __init__(self) -> None:
        self._until: dict[str, float] = {}

    def told(self, dispatcher: Dispatcher) -> Iterator[str]:
        """Yield what to say of each server that is not sent anything now, where there is something new."""
        now = dispatcher.clock.monotonic()
        for server, until, out in dispatcher.ceilings.held(now):
            if until - now < _LONG_HOLD or until <= self._until.get(server, float("-inf")) + _LONG_HOLD:
                continue
            self._until[server] = until
            left = f"{until - now:.0f} s"
            yield f"{server!r} refused what it was sent and is left alone for {left}; {out} in flight there"
