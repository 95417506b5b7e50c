"""What the process and the model servers say about growing: go on, stay, or step back.

Rules:
* The event loop's own lag, p99: above 50 ms nothing grows, above 200 ms a quarter is given back, once in 10 s.
* The model servers' queue: more than half as many waiting as running in two samples in a row, and nothing grows;
  more waiting than running, and a quarter is given back, once for each sample.
* Fewer than eight waiting are no queue: requests pass through one on their way to an idle server.
* A sample counts for 90 seconds. Servers that stopped telling hold nothing back.
"""

from collections import deque
from enum import IntEnum
from typing import Final

LAG_STOPS: Final = 0.05
LAG_SHRINKS: Final = 0.2
_LAG_PAUSE: Final = 10.0
_QUEUE_STOPS: Final = 0.5
_FEWEST_WAITING: Final = 8
_SAMPLE_LIVES: Final = 90.0
_SAMPLES: Final = 2

Queues = tuple[float, float]
"""Requests that wait and requests that run, summed over the model servers."""


class Advice(IntEnum):
    """What may be done to a ceiling."""

    GROW = 0
    STAY = 1
    SHRINK = 2


class Signals:
    """The latest of each signal. `why` says what the last advice other than `GROW` was given for."""

    def __init__(self) -> None:
        self.why = ""
        self._samples: deque[tuple[float, Queues]] = deque(maxlen=_SAMPLES)
        self._sample_is_new = False
        self._lag_acted = float("-inf")

    def heard(self, queues: Queues, now: float) -> None:
        """Take down what the model servers' queues were at `now`."""
        self._samples.append((now, queues))
        self._sample_is_new = True

    def advice(self, lag: float, now: float) -> Advice:
        """Return what may be done at `now`; `lag` in seconds."""
        of_lag, of_queue = self._of_lag(lag, now), self._of_queue(now)
        if of_lag is Advice.GROW and of_queue is Advice.GROW:
            return Advice.GROW
        if of_lag >= of_queue:
            self.why = f"the event loop lags by {lag * 1000:.0f} ms"
            return of_lag
        waiting, running = self._samples[-1][1]
        self.why = f"{waiting:.0f} requests wait at the model servers, {running:.0f} run"
        return of_queue

    def _of_lag(self, lag: float, now: float) -> Advice:
        if lag <= LAG_STOPS:
            return Advice.GROW
        if lag <= LAG_SHRINKS or now - self._lag_acted < _LAG_PAUSE:
            return Advice.STAY
        self._lag_acted = now
        return Advice.SHRINK

    def _of_queue(self, now: float) -> Advice:
        is_new, self._sample_is_new = self._sample_is_new, False
        recent = [queues for at, queues in self._samples if now - at <= _SAMPLE_LIVES]
        if not recent:
            return Advice.GROW
        if _is_queue(recent[-1], 1.0):
            return Advice.SHRINK if is_new else Advice.STAY
        if len(recent) == _SAMPLES and all(_is_queue(queues, _QUEUE_STOPS) for queues in recent):
            return Advice.STAY
        return Advice.GROW


def _is_queue(queues: Queues, share: float) -> bool:
    waiting, running = queues
    return waiting >= _FEWEST_WAITING and waiting > share * running
