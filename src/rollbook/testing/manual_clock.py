"""Time that moves when it is told to.

Rules:
* `advance` alone moves it; a sleep ends when the time has passed its end, the earliest first.
* A test waits for a sleeper by `asleep`, and never for real time.
"""

import asyncio
import heapq
import itertools


class ManualClock:
    """A `Clock` that stands still between two calls of `advance`. It starts at `at` seconds."""

    def __init__(self, at: float = 1000.0) -> None:
        self._at = at
        self._order = itertools.count()
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._changed = asyncio.Event()

    def monotonic(self) -> float:
        """Seconds from an arbitrary start."""
        return self._at

    def now(self) -> float:
        """Seconds since the epoch: the same number."""
        return self._at

    async def sleep(self, seconds: float) -> None:
        """Wait until the time has been advanced by `seconds`."""
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        woken = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self._at + seconds, next(self._order), woken))
        self._changed.set()
        await woken

    @property
    def sleeps(self) -> list[float]:
        """The seconds that each sleeper still has to wait, the shortest first."""
        return [end - self._at for end, _, woken in sorted(self._sleepers) if not woken.done()]

    async def asleep(self, count: int = 1) -> None:
        """Return when at least `count` sleepers wait."""
        while len(self.sleeps) < count:
            self._changed.clear()
            await self._changed.wait()

    def advance(self, seconds: float) -> None:
        """Move the time, and wake those whose time has come."""
        self._at += seconds
        while self._sleepers and self._sleepers[0][0] <= self._at:
            _, _, woken = heapq.heappop(self._sleepers)
            if not woken.done():
                woken.set_result(None)
