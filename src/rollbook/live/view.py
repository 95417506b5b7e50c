"""Views of a run in progress: lines in a file, or one redrawn line on a terminal.

Rules:
* A view is an observer: it is handed events, and never reaches the run.
* Lines are timed, not counted: at most one in `_AT_MOST_EVERY` seconds, at least one in `_AT_LEAST_EVERY` while
  `beat` is called, and the last one says what the artifacts hold.
* The first failures of each class and cause are told as they happen; the rest are counted, so that a log stays small.
* Text that came from data is escaped before it is written.

Source: collection.md §3.9; cases RC-56, RC-61.
"""

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final, Protocol, TextIO

from rich.console import Console
from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text

from rollbook.clock import Clock
from rollbook.live.escape import escaped
from rollbook.live.line import line
from rollbook.live.progress import Progress
from rollbook.records.event import AttemptEnded, Event, RunEnded, RunNoted, RunPlanned
from rollbook.records.outcome import Failed, Interrupted, Outcome
from rollbook.records.record import Record

_AT_MOST_EVERY: Final = 5.0
_AT_LEAST_EVERY: Final = 30.0
_BEAT: Final = 1.0
_TOLD_PER_CLASS: Final = 3
_LONGEST_MESSAGE: Final = 200
_LONGEST_CAUSE: Final = 160
_KEPT: Final = "\n\t"


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


class FailureLines:
    """Which failures are told in full: the first of each class and cause."""

    def __init__(self) -> None:
        self._told: Counter[tuple[str, str]] = Counter()

    def line_for(self, record: Record, cause: str | None = None) -> str | None:
        """Return the line that tells of `record` and its `cause`, or None when it is only counted."""
        failure = _failure(record.outcome)
        if failure is None:
            return None
        failure_class, message = failure
        why = (cause or "")[:_LONGEST_CAUSE]
        self._told[failure_class, why] += 1
        told = self._told[failure_class, why]
        if told > _TOLD_PER_CLASS:
            return None
        more = " (further ones of this class are counted)" if told == _TOLD_PER_CLASS else ""
        said = ": ".join(part for part in (message[:_LONGEST_MESSAGE], why) if part)
        return escaped(f"rollout {record.key} {failure_class}: {said}{more}")


def _failure(outcome: Outcome) -> tuple[str, str] | None:
    match outcome:
        case Failed() | Interrupted():
            return outcome.failure_class, outcome.message
        case _:
            return None


class LineView:
    """Whole lines, for a log file or a pipe."""

    def __init__(self, stream: TextIO, clock: Clock) -> None:
        self._stream = stream
        self._clock = clock
        self._progress = Progress(clock.monotonic())
        self._failures = FailureLines()
        self._last = clock.monotonic()
        self._closed = False

    def observe(self, event: Event) -> None:
        """Fold `event`; write a line when one is due."""
        self._progress.add(event)
        match event:
            case RunNoted(text):
                self._write(escaped(text, _KEPT))
            case RunPlanned():
                self._write_plan(event)
            case AttemptEnded():
                self._tell(event)
            case RunEnded():
                self.close()
            case _:
                return

    def _write_plan(self, plan: RunPlanned) -> None:
        settled = f", {plan.settled} of them settled before" if plan.settled else ""
        self._write(f"{plan.tasks} tasks, {plan.rollouts} rollouts planned{settled}")
        self._last = self._progress.started_at = self._clock.monotonic()

    def _tell(self, ended: AttemptEnded) -> None:
        told = self._failures.line_for(ended.record, ended.cause)
        if told is not None:
            self._write(told)
        self._write_if_older_than(_AT_MOST_EVERY)

    def beat(self) -> None:
        """Write a line when none was written for a while: a sign of life."""
        self._write_if_older_than(_AT_LEAST_EVERY)

    def close(self) -> None:
        """Write where the run stands now, once."""
        if not self._closed and self._progress.is_planned:
            self._write(line(self._progress.snapshot(self._clock.monotonic())))
        self._closed = True

    def _write_if_older_than(self, seconds: float) -> None:
        now = self._clock.monotonic()
        if self._closed or now - self._last < seconds:
            return
        self._last = now
        self._write(line(self._progress.snapshot(now)))

    def _write(self, text: str) -> None:
        with contextlib.suppress(OSError, ValueError):
            self._stream.write(f"{text}\n")
            self._stream.flush()


class TerminalView:
    """One line that is redrawn twice a second."""

    def __init__(self, console: Console, clock: Clock) -> None:
        self._clock = clock
        self._progress = Progress(clock.monotonic())
        self._failures = FailureLines()
        self._spinner = Spinner("dots")
        self._live = Live(self._spinner, console=console, refresh_per_second=2, transient=True)
        self._closed = False

    def observe(self, event: Event) -> None:
        """Fold `event`; the line is redrawn by `beat`."""
        self._progress.add(event)
        if isinstance(event, RunNoted):
            self._live.console.print(Text(escaped(event.text, _KEPT)))
        elif isinstance(event, RunPlanned):
            self._progress.started_at = self._clock.monotonic()
        elif isinstance(event, AttemptEnded):
            told = self._failures.line_for(event.record, event.cause)
            if told is not None:
                self._live.console.print(Text(told))
        elif isinstance(event, RunEnded):
            self.close()

    def beat(self) -> None:
        """Redraw the line with the present counts."""
        if not self._closed:
            self._live.start()
            self._spinner.update(text=Text(self._line(), no_wrap=True, overflow="ellipsis"))

    def close(self) -> None:
        """Leave the last line standing."""
        if self._closed:
            return
        self._closed = True
        self._live.stop()
        if self._progress.is_planned:
            self._live.console.print(Text(self._line()))

    def _line(self) -> str:
        return line(self._progress.snapshot(self._clock.monotonic()))


def view_for(stream: TextIO, clock: Clock) -> View:
    """Return the view that suits `stream`: redrawn on a terminal, whole lines elsewhere."""
    console = Console(file=stream)
    return (
        TerminalView(console, clock)
        if console.is_terminal and not console.is_dumb_terminal
        else LineView(stream, clock)
    )


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
