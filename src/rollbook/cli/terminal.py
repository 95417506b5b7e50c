"""How the command line speaks: results on standard output, the rest on standard error.

Rules:
* Text that came from data never moves the cursor, rings or colours: control characters are shown as escapes.
* A log stays small however often the same goes wrong.
* Colour only where a terminal reads.
* What cannot be said ends nothing: a terminal may be gone, and the disk of a log may be full. Results that nobody gets
  are an error, but where their terminal is gone.

Source: servers.md §10.1; case RC-61.
"""

import errno
import json
import logging
import os
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, TextIO

import click

from rollbook.live.escape import escaped

_LINES_OF_A_KIND: Final = 3
_KEPT: Final = "\n\t"


def fit(text: str) -> str:
    """Return `text` as it may be shown: line breaks and tabs stay, other control characters become escapes."""
    return escaped(text, _KEPT)


def say(text: str) -> None:
    """Write one result line to standard output."""
    _written(fit(text))


def note(text: str) -> None:
    """Write one line about what is going on to standard error."""
    _written(fit(text), err=True)


def say_json(value: object) -> None:
    """Write `value` to standard output as one JSON document; what a terminal must not see is a JSON escape."""
    text = json.dumps(value, ensure_ascii=False, indent=2, default=str)
    _written(text if fit(text) == text else json.dumps(value, indent=2, default=str))


def say_error(message: str) -> None:
    """Write one red `Error:` line to standard error."""
    _written(click.style(fit(f"Error: {message}"), fg="red"), err=True)


def have_streams() -> None:
    """Open what a caller closed of the three standard streams: the next file must not get the number of one."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    sys.stdout = sys.stdout or open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115  a standard stream
    sys.stderr = sys.stderr or open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115  the other one


def lead_nowhere(stream: TextIO) -> None:
    """Let what is written to `stream` go nowhere from now on; nobody reads it, and the interpreter flushes it."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _written(text: str, *, err: bool = False) -> None:
    try:
        click.echo(text, err=err)
    except OSError as error:
        if error.errno == errno.EIO:
            lead_nowhere(sys.stderr if err else sys.stdout)
        elif not err:
            raise


class FewOfEach(logging.StreamHandler[TextIO]):
    """Writes the first lines of each kind, a kind being what a logger says whatever the values in it."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        self._seen: Counter[tuple[str, str]] = Counter()

    def emit(self, record: logging.LogRecord) -> None:
        """Write `record` unless its kind was written often enough."""
        self._seen[_kind(record)] += 1
        if self._seen[_kind(record)] <= _LINES_OF_A_KIND:
            super().emit(record)

    def format(self, record: logging.LogRecord) -> str:
        """Format `record`; the last line of a kind says that it is the last."""
        last = self._seen[_kind(record)] == _LINES_OF_A_KIND
        return super().format(record) + (" (further lines like this are left out; -v shows them)" if last else "")


def _kind(record: logging.LogRecord) -> tuple[str, str]:
    return (record.name, str(record.msg))


class EscapedLines(logging.Formatter):
    """A log line whose text cannot drive the terminal."""

    def format(self, record: logging.LogRecord) -> str:
        """Format `record` and escape what it carries."""
        return fit(super().format(record))


@contextmanager
def logged_to_stderr(*, verbose: bool) -> Iterator[None]:
    """Send warnings (everything, when `verbose`) to standard error inside the block; one that repeats is cut short."""
    handler = logging.StreamHandler(sys.stderr) if verbose else FewOfEach(sys.stderr)
    handler.setFormatter(
        EscapedLines("%(levelname)s %(name)s: %(message)s" if verbose else "%(levelname)s: %(message)s")
    )
    root = logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG if verbose else logging.WARNING)
    try:
        yield
    finally:
        root.removeHandler(handler)
        root.setLevel(level)
