"""What is done by the clock while a run goes on: limits, ceilings, signs of a stall.

Rules:
* One task for the whole run. What it costs grows with what is in flight, and not with the plan.
* It ends with the run, and takes nothing with it.

Source: collection.md §3.2, §19; cases RC-37, RC-40.
"""

import asyncio
from collections.abc import AsyncIterator
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
        held = holds.told(dispatcher)
        if held is not None:
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
    """Who is told that servers are left alone, because they asked for it: once, and again when they ask for longer.

    How many wait meanwhile, and what they met, is told with the progress.
    """

    def __init__(self) -> None:
        self._until = float("-inf")

    def told(self, dispatcher: Dispatcher) -> str | None:
        """Return what to say of a server that is not sent anything now, if there is something new."""
        now = dispatcher.clock.monotonic()
        until = dispatcher.ceilings.room_at(now)
        if until is None or until - now < _LONG_HOLD or until <= self._until + _LONG_HOLD:
            return None
        self._until = until
        out = len(dispatcher.flights)
        return f"a server asked to be left alone: nothing is sent to it for {until - now:.0f} s; {out} in flight"
