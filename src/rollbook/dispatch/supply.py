"""The owed rollouts, handed to whichever lane is free.

Rules:
* Rollouts are handed out in the order in which they come, and none once a stop is asked for.
* Looking for the next one holds nothing up: where an iterator yields None it has found none for a while, and whatever
  else the process does has its turn. One lane looks at a time.
* A lane that is cancelled while it looks takes no rollout with it.
"""

import asyncio
from collections.abc import Iterator

from rollbook.clock import Clock
from rollbook.dispatch.stop import Stop
from rollbook.records.task import Rollout


class Supply:
    """What the lanes of one run share."""

    def __init__(self, owed: Iterator[Rollout | None], stop: Stop, clock: Clock) -> None:
        self._owed = owed
        self._stop = stop
        self._clock = clock
        self._looking = asyncio.Lock()

    async def take(self) -> Rollout | None:
        """Return the next rollout, or None when there is none, or none is to be sent any more."""
        async with self._looking:
            while not self._stop.asked.is_set():
                try:
                    rollout = next(self._owed)
                except StopIteration:
                    return None
                if rollout is not None:
                    return rollout
                await self._clock.sleep(0)
        return None
