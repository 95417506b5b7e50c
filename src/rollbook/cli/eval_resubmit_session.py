"""One `gym eval resubmit`, from its flags to what it prints.

Rules:
* A decision without a choice or without a reason is a mistake of usage.

Source: collection.md §4.7, §4.10.
"""

import getpass
import re
import socket
from collections.abc import Mapping
from typing import Any, Final

import click

from rollbook.cli.run_outputs import run_named
from rollbook.cli.terminal import say, say_json
from rollbook.clock import SystemClock
from rollbook.records.identity import RolloutKey
from rollbook.report.resubmit_text import resubmit_json, resubmit_text
from rollbook.verbs.resubmit import Decision, approve, proposed

ALL_INFRASTRUCTURE: Final = "all-infrastructure"
_KEY: Final = re.compile(r"([0-9]+)[:-]([0-9]+)")
_UNSAID: Final = "(not said)"


def resubmit(output: str, given: Mapping[str, Any], *, as_json: bool) -> None:
    """Take the decision that the flags in `given` make about the run at `output`, and print what it comes to.

    Raises:
        click.UsageError: nothing is decided, no reason is given, or a rollout cannot be read.

    """
    dry_run = bool(given["dry_run"])
    decision = _decision(given, dry_run=dry_run)
    decide = proposed if dry_run else approve
    told = decide(run_named(output), decision, SystemClock())
    if as_json:
        say_json(resubmit_json(told, dry_run=dry_run))
    else:
        say(resubmit_text(told, dry_run=dry_run))


def _decision(given: Mapping[str, Any], *, dry_run: bool) -> Decision:
    masked = given["approve_masked"] or ""
    if not (given["extend_attempts"] or masked or given["release_held"]):
        raise click.UsageError("nothing is decided: give --extend-attempts, --approve-masked or --release-held.")
    why = (given["why"] or "").strip()
    if not why and not dry_run:
        raise click.UsageError("--why is missing: say why; it is kept in the run's manifest.")
    return Decision(
        who=given["who"] or f"{getpass.getuser()}@{socket.gethostname()}",
        why=why or _UNSAID,
        attempts_more=given["extend_attempts"] or 0,
        masked=() if masked == ALL_INFRASTRUCTURE else tuple(map(_key, filter(None, masked.split(",")))),
        infrastructure=masked == ALL_INFRASTRUCTURE,
        release_held=given["release_held"],
    )


def _key(word: str) -> RolloutKey:
    match = _KEY.fullmatch(word.strip())
    if match is None:
        raise click.UsageError(f"--approve-masked {word}: write a rollout as TASK:ROLLOUT, or {ALL_INFRASTRUCTURE}.")
    return RolloutKey(int(match[1]), int(match[2]))
