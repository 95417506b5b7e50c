"""One `gym eval status`, from the runs it names to its exit code.

Rules:
* While it watches, a terminal is redrawn and anything else gets a new text only when something changed.
* In JSON one document is printed, with `--watch` once the run has ended.

Source: collection.md §9.3; cases RC-21, RC-53.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import click

from rollbook.cli.run_outputs import runs_named
from rollbook.cli.terminal import say, say_json
from rollbook.clock import Clock, SystemClock
from rollbook.records.run_status import RunState, RunStatus, exit_code_of_all
from rollbook.report.status_json import status_json
from rollbook.report.status_text import status_text

WATCH_S: Final = 2.0
ReadStatus = Callable[[Path], RunStatus]


@dataclass(frozen=True, slots=True)
class Asked:
    """What the command line asked for."""

    outputs: tuple[str, ...]
    as_json: bool = False
    watch: bool = False
    require_complete: bool = False


@dataclass(slots=True)
class _Screen:
    """Where the text goes: a terminal is cleared first, a file gets what changed."""

    is_terminal: bool
    _last: str = field(default="")

    def show(self, text: str) -> None:
        if self.is_terminal and self._last:
            click.clear()
        if self.is_terminal or text != self._last:
            say(text)
        self._last = text


def show_status(asked: Asked, read: ReadStatus, clock: Clock | None = None) -> int:
    """Print how the runs are, and return the exit code that says it in short."""
    statuses = _read_again(asked, read, clock or SystemClock()) if asked.watch else _read(asked, read)
    if asked.as_json:
        say_json(status_json(statuses, require_complete=asked.require_complete))
    elif not asked.watch:
        say(status_text(statuses))
    return exit_code_of_all(statuses, require_complete=asked.require_complete)


def _read_again(asked: Asked, read: ReadStatus, clock: Clock) -> list[RunStatus]:
    import asyncio  # noqa: PLC0415  slow to import; who looks once does without it

    return asyncio.run(_watched(asked, read, clock))


async def _watched(asked: Asked, read: ReadStatus, clock: Clock) -> list[RunStatus]:
    """Show the runs again and again until none of them goes on."""
    screen = _Screen(sys.stdout.isatty())
    while True:
        statuses = _read(asked, read)
        if not asked.as_json:
            screen.show(status_text(statuses))
        if all(status.state is not RunState.RUNNING for status in statuses):
            return statuses
        await clock.sleep(WATCH_S)


def _read(asked: Asked, read: ReadStatus) -> list[RunStatus]:
    return [read(output) for output in runs_named(asked.outputs)]
