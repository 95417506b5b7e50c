"""How the command line speaks: results on standard output, the rest on standard error.

Rules:
* Text that came from data never moves the cursor, rings or colours: control characters are shown as escapes.
* Colour only where a terminal reads.

Source: servers.md §10.1; case RC-61.
"""

import json
import logging
import sys
from typing import Final

import click

from rollbook.live.escape import escaped

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


class EscapedLines(logging.Formatter):
    """A log line whose text cannot drive the terminal."""

    def format(self, record: logging.LogRecord) -> str:
        """Format `record` and escape what it carries."""
        return fit(super().format(record))


def log_to_stderr(*, verbose: bool) -> None:
    """Send warnings (everything, when `verbose`) to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        EscapedLines("%(levelname)s %(name)s: %(message)s" if verbose else "%(levelname)s: %(message)s")
    )
    logging.basicConfig(level=logging.DEBUG if verbose else logging.WARNING, handlers=[handler], force=True)
