"""One `gym eval profile`, from the runs it names to what is printed.

Rules:
* A condition is read before any file is.
* What is damaged is told on standard error, and the rest is profiled if it is complete without it; the exit code is 5
  then, as that of a status is.
"""

import gc
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import click

from rollbook.cli.run_outputs import runs_named
from rollbook.cli.terminal import note, say, say_json
from rollbook.records.run_status import DONE, VIOLATED
from rollbook.report.profile_text import profile_json, profile_text
from rollbook.scoring.profile_filter import parsed
from rollbook.verbs.profile import profile
from rollbook.verbs.profile_run import ProfiledRun, run_at, run_of

_LISTED: Final = 5
_RARELY: Final = 100_000
"""Rows make no cycles; the collector would go through all that waits and find nothing."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What the command line asked for."""

    outputs: tuple[str, ...]
    inputs: str | None = None
    rollouts: str | None = None
    output: str | None = None
    keep: str | None = None
    export: str | None = None
    overwrite: bool = False
    allow_partial_rollouts: bool = False
    as_json: bool = False


def show_profile(asked: Asked) -> int:
    """Profile the runs, print what it came to, and return the exit code.

    Raises:
        click.UsageError: it is not said which runs, or where the profile of several goes.

    """
    if asked.keep is not None:
        parsed(asked.keep)
    elif asked.export is not None:
        raise click.UsageError("--export writes the tasks that --keep keeps; say which, for example --keep 'mean<1'.")
    gc.set_threshold(_RARELY)
    runs = _runs(asked)
    came_to = profile(
        runs,
        _output(asked, runs),
        keep=asked.keep,
        export=None if asked.export is None else Path(asked.export),
        overwrite=asked.overwrite,
        allow_partial_rollouts=asked.allow_partial_rollouts,
    )
    for said in came_to.damage[:_LISTED]:
        note(f"Damaged: {said}")
    if len(came_to.damage) > _LISTED:
        note(f"and {len(came_to.damage) - _LISTED} more places like these")
    for warning in came_to.warnings:
        note(warning)
    if asked.as_json:
        say_json(profile_json(came_to))
    else:
        say(profile_text(came_to))
    return VIOLATED if came_to.damage else DONE


def _runs(asked: Asked) -> list[ProfiledRun]:
    by_files = asked.inputs is not None or asked.rollouts is not None
    if by_files == bool(asked.outputs):
        raise click.UsageError("say which run: its output, or its files with --inputs and --rollouts.")
    if not by_files:
        return [run_at(output) for output in runs_named(asked.outputs)]
    if asked.inputs is None or asked.rollouts is None:
        raise click.UsageError("--inputs and --rollouts are given together.")
    return [run_of(Path(asked.inputs), Path(asked.rollouts))]


def _output(asked: Asked, runs: Sequence[ProfiledRun]) -> Path:
    if asked.output is not None:
        return Path(asked.output)
    if len(runs) > 1:
        raise click.UsageError(f"{len(runs)} runs are profiled together; say with --output beside which name to write.")
    return runs[0].paths.output
