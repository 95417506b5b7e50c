"""How late the event loop is: what a short sleep takes beyond its time.

Rules:
* A look every 100 ms, by the clock that was given; what counts is the last 10 seconds.
* The 99th percentile is one that occurred (nearest rank), so that a single late look in a hundred is not one.
"""

import math
from collections import deque
from typing import Final

from rollbook.clock import Clock

EVERY: Final = 0.1
WINDOW: Final = 10.0
_SHARE: Final = 0.99


class LoopLag:
    """The lag of the loop on which `watch` runs."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._looks: deque[tuple[float, float]] = deque()

    async def watch(self) -> None:
        """Look at the lag until cancelled."""
        before = self._clock.monotonic()
        while True:
            await self._clock.sleep(EVERY)
            now = self._clock.monotonic()
            self._looks.append((now, max(0.0, now - before - EVERY)))
            self._forget(now)
            before = now

    @property
    def p99(self) -> float:
        """The lag, in seconds, that 99 of 100 looks did not exceed; 0 before the first."""
        lags = sorted(lag for _, lag in self._looks)
        return lags[math.ceil(len(lags) * _SHARE) - 1] if lags else 0.0

    def _forget(self, now: float) -> None:
        while self._looks and now - self._looks[0][0] > WINDOW:
            self._looks.popleft()
