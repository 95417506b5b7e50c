"""How late the event loop is: what a short sleep takes beyond its time.

Rules:
* A look every 100 ms, by the clock that was given; what counts is the last 10 seconds.
* The 99th percentile is one that occurred (nearest rank), so that a single late look in a hundred is not one.
"""

import math
from array import array
from collections import deque
from typing import Final

from rollbook.clock import Clock

EVERY: Final = 0.1
WINDOW: Final = 10.0
WARM_UP: Final = 2.0
MOST_MILLISECONDS: Final = 1000
"""A longer lag counts as this one."""
_SHARE: Final = 0.99


class LoopLag:
    """The lag of the loop on which `watch` runs."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._looks: deque[tuple[float, float]] = deque()
        self._lags = array("Q", bytes(8 * (MOST_MILLISECONDS + 1)))

    async def watch(self) -> None:
        """Look at the lag until cancelled."""
        before = began = self._clock.monotonic()
        while True:
            await self._clock.sleep(EVERY)
            now = self._clock.monotonic()
            lag = max(0.0, now - before - EVERY)
            self._looks.append((now, lag))
            self._forget(now)
            if now - began >= WARM_UP:
                self._lags[min(int(lag * 1000), MOST_MILLISECONDS)] += 1
            before = now

    @property
    def p99(self) -> float:
        """The lag, in seconds, that 99 of 100 looks did not exceed; 0 before the first."""
        lags = sorted(lag for _, lag in self._looks)
        return lags[math.ceil(len(lags) * _SHARE) - 1] if lags else 0.0

    @property
    def p99_of_all(self) -> float | None:
        """The lag, in seconds to the millisecond, that 99 of 100 looks did not exceed after the first two seconds."""
        left = math.ceil(sum(self._lags) * _SHARE)
        for milliseconds, count in enumerate(self._lags):
            left -= count
            if left <= 0 and count:
                return (milliseconds + 1) / 1000
        return None

    def _forget(self, now: float) -> None:
        while self._looks and now - self._looks[0][0] > WINDOW:
            self._looks.popleft()
