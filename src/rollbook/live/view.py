"""Views of a run in progress: lines in a file, or one redrawn line on a terminal.

Rules:
* A view is an observer: it is handed events, and never reaches the run.
* Lines are timed, not counted: at most one in `_AT_MOST_EVERY` seconds, fewer the longer a run takes, at least one in
  `_AT_LEAST_EVERY`, and the last one says what the artifacts hold.
* What draws on a terminal is loaded where there is one.
* `beat` writes and draws what is timed; `observe` counts, asks for no time, and costs a few microseconds.

Source: collection.md §3.9; cases RC-56, RC-61.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final, Protocol, TextIO

from rollbook.clock import Clock
from rollbook.live.line import line
from rollbook.live.notices import Notices, is_silent
from rollbook.live.progress import Progress
from rollbook.records.event import Event, RunEnded, RunPlanned

_AT_MOST_EVERY: Final = 5.0
_AT_LEAST_EVERY: Final = 30.0
_BEAT: Final = 1.0
_LINES_A_RUN: Final = 120


class View(Protocol):
    """Something that shows a run."""

    def observe(self, event: Event) -> None:
        """Take note of one event."""
        ...

    def beat(self) -> None:
        """Take note that time has passed."""
        ...

    def close(self) -> None:
        """Show where the run stands now, for the last time."""
        ...


class LineView:
    """Whole lines, for a log file or a pipe."""

    def __init__(self, stream: TextIO, clock: Clock) -> None:
        self._stream = stream
        self._clock = clock
        self._progress = Progress(clock.monotonic())
        self._notices = Notices()
        self._last = clock.monotonic()
        self._told_endings = 0
        self._closed = False

    def observe(self, event: Event) -> None:
        """Fold `event`, and write what is told of it."""
        self._progress.add(event)
        if is_silent(event):
            return
        told = self._notices.line_for(event)
        if told is not None:
            self._write(told)
        if isinstance(event, RunPlanned):
            self._last = self._progress.started_at = self._clock.monotonic()
        elif isinstance(event, RunEnded):
            self.close()

    def beat(self) -> None:
        """Write where the run stands when that is due: soon after something ended, later as a sign of life."""
        now = self._clock.monotonic()
        age = now - self._last
        moved = self._progress.endings != self._told_endings
        if not self._closed and age >= (self._interval(now) if moved else _AT_LEAST_EVERY):
            self._last, self._told_endings = now, self._progress.endings
            self._write(line(self._progress.snapshot(now)))

    def _interval(self, now: float) -> float:
        """Return the seconds between two lines: a longer run has fewer, so that its log stays small."""
        return min(max(_AT_MOST_EVERY, (now - self._progress.started_at) / _LINES_A_RUN), _AT_LEAST_EVERY)

    def close(self) -> None:
        """Write where the run stands now, once."""
        if not self._closed and self._progress.is_planned:
            self._write(line(self._progress.snapshot(self._clock.monotonic())))
        self._closed = True

    def _write(self, text: str) -> None:
        with contextlib.suppress(OSError, ValueError):
            self._stream.write(f"{text}\n")
            self._stream.flush()


def view_for(stream: TextIO, clock: Clock) -> View:
    """Return the view that suits `stream`: redrawn on a terminal, whole lines elsewhere."""
    if not stream.isatty():
        return LineView(stream, clock)
    from rollbook.live.terminal_view import terminal_view  # noqa: PLC0415  see the rules

    return terminal_view(stream, clock) or LineView(stream, clock)


@asynccontextmanager
async def beating(view: View, clock: Clock) -> AsyncIterator[None]:
    """Call `view.beat` about once a second while the block runs, and close the view when it ends."""

    async def beat() -> None:
        while True:
            await clock.sleep(_BEAT)
            view.beat()

    pulse = asyncio.create_task(beat())
    try:
        yield
    finally:
        pulse.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await pulse
        view.close()
