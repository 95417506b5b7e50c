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

SWEEP_SECONDS: Final = 0.25
STALLED_SECONDS: Final = 30.0


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
    clock = dispatcher.clock
    while True:
        await clock.sleep(SWEEP_SECONDS)
        dispatcher.flights.sweep()
        stalled = dispatcher.flights.stalled(STALLED_SECONDS)
        if stalled is not None:
            dispatcher.observe(stalled)
        dispatcher.ceilings.tick(clock.monotonic(), dispatcher.lag.p99)
        dispatcher.adjust()
