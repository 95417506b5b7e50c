"""The view of a run on a terminal: one line that is redrawn, and above it what is told.

Rules:
* Text that came from data is no markup.

Source: collection.md §3.9; cases RC-56, RC-61.
"""

from typing import TextIO

from rich.console import Console
from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text

from rollbook.clock import Clock
from rollbook.live.line import line
from rollbook.live.notices import Notices, is_silent
from rollbook.live.progress import Progress
from rollbook.records.event import Event, RunEnded, RunPlanned


class TerminalView:
    """One line that is redrawn twice a second."""

    def __init__(self, console: Console, clock: Clock) -> None:
        self._clock = clock
        self._progress = Progress(clock.monotonic())
        self._notices = Notices()
        self._spinner = Spinner("dots")
        self._live = Live(self._spinner, console=console, refresh_per_second=2, transient=True)
        self._closed = False

    def observe(self, event: Event) -> None:
        """Fold `event`; the line is redrawn by `beat`."""
        self._progress.add(event)
        if is_silent(event):
            return
        if isinstance(event, RunPlanned):
            self._progress.started_at = self._clock.monotonic()
        elif isinstance(event, RunEnded):
            self.close()
        elif (told := self._notices.line_for(event)) is not None:
            self._live.console.print(Text(told))

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


def terminal_view(stream: TextIO, clock: Clock) -> TerminalView | None:
    """Return a view that draws on `stream`, or None when that cannot move its cursor."""
    console = Console(file=stream)
    return TerminalView(console, clock) if console.is_terminal and not console.is_dumb_terminal else None
