"""The guard between a run and a sink.

Rules:
* A sink is called on one daemon thread, in order, and never by who logs: neither `log` nor the run waits for it.
* What waits is bounded: a sink that does not keep up loses its oldest numbers, which is said once.
* A sink that raises is logged once, by name, and told nothing more.
* The end waits so long and no longer; a sink that hangs then is left alone, which is said once.
"""

import logging
import threading
from collections import deque
from collections.abc import Mapping
from typing import Final

from rollbook.telemetry.guest import Guest
from rollbook.telemetry.sink import Sink, name_of

_LOG = logging.getLogger(__name__)
ROOM: Final = 64
END_WAIT_S: Final = 5.0


class GuardedSink:
    """A sink that can be told anything at any time, whatever the one behind it does."""

    def __init__(self, sink: Sink, room: int = ROOM) -> None:
        self._sink = sink
        self._room = room
        self._waiting: deque[tuple[dict[str, float], int]] = deque()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._closing = False
        self._over = False
        self._said_full = False

    def log(self, metrics: Mapping[str, float], step: int) -> None:
        """Hand `metrics` on as soon as the sink is ready; return at once."""
        with self._changed:
            if self._over or self._closing:
                return
            full = len(self._waiting) >= self._room
            if full:
                self._waiting.popleft()
            self._waiting.append((dict(metrics), step))
            self._changed.notify()
            self._started()
        if full and not self._said_full:
            self._said_full = True
            _LOG.warning("the sink %s does not keep up; its oldest numbers are dropped", name_of(self._sink))

    def close(self, wait_s: float = END_WAIT_S) -> None:
        """Return once the sink took what it was told, after `wait_s` seconds at the latest; it blocks that long."""
        with self._changed:
            self._closing = True
            self._changed.notify()
            thread = self._thread
        if thread is None:
            return
        thread.join(wait_s)
        with self._changed:
            abandoned = thread.is_alive() and not self._over
            self._over = True
            self._waiting.clear()
        if abandoned:
            _LOG.warning("the sink %s did not return within %g s and is left alone", name_of(self._sink), wait_s)

    def _started(self) -> None:
        if self._thread is not None:
            return
        self._thread = threading.Thread(target=self._hand_on, name="rollbook-sink", daemon=True)
        try:
            self._thread.start()
        except RuntimeError as error:
            self._thread, self._over = None, True
            self._waiting.clear()
            _LOG.warning("the sink %s has no thread and is told nothing: %s", name_of(self._sink), error)

    def _hand_on(self) -> None:
        guest = Guest(self._call, f"the sink {name_of(self._sink)}")
        try:
            while not guest.failed and (told := self._next()) is not None:
                guest(*told)
        finally:
            with self._changed:
                self._over = True
                self._waiting.clear()

    def _call(self, metrics: dict[str, float], step: int) -> None:
        self._sink.log(metrics, step)

    def _next(self) -> tuple[dict[str, float], int] | None:
        """Wait for something to hand on; None when there is nothing more to come."""
        with self._changed:
            while not self._waiting and not self._closing and not self._over:
                self._changed.wait()
            return self._waiting.popleft() if self._waiting and not self._over else None
