"""How the command line speaks: results on standard output, the rest on standard error.

Rules:
* Text that came from data never moves the cursor, rings or colours: control characters are shown as escapes.
* A log stays small however often the same goes wrong.
* Colour only where a terminal reads.

Source: servers.md §10.1; case RC-61.
"""

import json
import logging
import sys
from collections import Counter
from typing import Final

import click

from rollbook.live.escape import escaped

_LINES_OF_A_KIND: Final = 3
_KEPT: Final = "\n\t"


def fit(text: str) -> str:
    """Return `text` as it may be shown: line breaks and tabs stay, other control characters become escapes."""
    return escaped(text, _KEPT)


def say(text: str) -> None:
    """Write one result line to standard output."""
    click.echo(fit(text))


def note(text: str) -> None:
    """Write one line about what is going on to standard error."""
    click.echo(fit(text), err=True)


def say_json(value: object) -> None:
    """Write `value` to standard output as one JSON document; what a terminal must not see is a JSON escape."""
    text = json.dumps(value, ensure_ascii=False, indent=2, default=str)
    click.echo(text if fit(text) == text else json.dumps(value, indent=2, default=str))


def say_error(message: str) -> None:
    """Write one red `Error:` line to standard error."""
    click.echo(click.style(fit(f"Error: {message}"), fg="red"), err=True)


class FirstOfEach(logging.Filter):
    """Lets the first lines of each kind through, a kind being what a logger says whatever the values in it."""

    def __init__(self) -> None:
        super().__init__()
        self._seen: Counter[tuple[str, str]] = Counter()

    def filter(self, record: logging.LogRecord) -> bool:
        """Tell whether `record` is to be written; the last one that is says so."""
        kind = (record.name, str(record.msg))
        self._seen[kind] += 1
        if self._seen[kind] == _LINES_OF_A_KIND:
            record.msg = f"{record.msg} (further lines like this are left out; -v shows them)"
        return self._seen[kind] <= _LINES_OF_A_KIND


class EscapedLines(logging.Formatter):
    """A log line whose text cannot drive the terminal."""

    def format(self, record: logging.LogRecord) -> str:
        """Format `record` and escape what it carries."""
        return fit(super().format(record))


def log_to_stderr(*, verbose: bool) -> None:
    """Send warnings (everything, when `verbose`) to standard error; a warning that repeats is cut short."""
    handler = logging.StreamHandler(sys.stderr)
    if not verbose:
        handler.addFilter(FirstOfEach())
    handler.setFormatter(
        EscapedLines("%(levelname)s %(name)s: %(message)s" if verbose else "%(levelname)s: %(message)s")
    )
    logging.basicConfig(level=logging.DEBUG if verbose else logging.WARNING, handlers=[handler], force=True)
