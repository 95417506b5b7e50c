"""One `gym eval health-check`, from the folder it names to its exit code.

Rules:
* With `--json` nothing but the summary is printed, which is the saved one with its `schema_version`.
* What was found is for a person to weigh: only a limit that was asked for makes the command fail.

Source: collection.md §7.3.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import click
import msgspec

from rollbook.cli.run_outputs import run_named
from rollbook.cli.terminal import say, say_json
from rollbook.health.summary import Limits
from rollbook.health.words import lines_of
from rollbook.report.shapes import VERSION
from rollbook.verbs.health import accounting_at, check_health

ROLLOUTS_NAME: Final = "rollouts.jsonl"
LIMIT_EXCEEDED_CODE: Final = 1


@dataclass(frozen=True, slots=True)
class Asked:
    """What the command line asked for."""

    run_dir: str
    rollouts_file: str | None = None
    workers: int | None = None
    ignore_checks: str | None = None
    max_unhealthy: float | None = None
    max_failed: float | None = None
    max_missing: float | None = None
    as_json: bool = False


def show_health(asked: Asked) -> int:
    """Check the run that is named, print what came of it, and return the exit code."""
    output = results_named(asked.run_dir, asked.rollouts_file)
    summary = check_health(
        [output],
        output.parent,
        workers=asked.workers,
        ignored=(asked.ignore_checks or "").split(","),
        accounting=accounting_at(output),
        limits=Limits(failed=asked.max_failed, missing=asked.max_missing, unhealthy=asked.max_unhealthy),
    )
    if asked.as_json:
        say_json(VERSION | msgspec.json.decode(Path(summary.summary).read_bytes()))
    else:
        say("\n".join(lines_of(summary)))
    return LIMIT_EXCEEDED_CODE if summary.exceeds_limits else 0


def results_named(run_dir: str, rollouts_file: str | None) -> Path:
    """Return the results that the command line names.

    Raises:
        click.UsageError: there are none.

    """
    folder = Path(run_dir)
    if rollouts_file is not None:
        given = Path(rollouts_file)
        found = next((path for path in (given, folder / given) if path.is_file()), None)
    elif folder.is_dir() and (folder / ROLLOUTS_NAME).is_file():
        found = folder / ROLLOUTS_NAME
    else:
        found = run_named(run_dir)
    if found is None or not found.is_file():
        raise click.UsageError(f"{rollouts_file or found}: no results are there; name them with --rollouts-file PATH.")
    return found
