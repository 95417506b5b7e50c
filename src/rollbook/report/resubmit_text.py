"""What a decision about a run lets run again, as text and as JSON.

Rules:
* What it is about is counted and, where it is few, named; who decided and why stands beside it.

Source: collection.md §4.7, §4.10.
"""

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from rollbook.records.approval import Attempt
from rollbook.records.json_values import JsonObject
from rollbook.records.resubmission import Resubmission
from rollbook.report.shapes import VERSION
from rollbook.report.words import shown

_NAMED: Final = 10


def resubmit_text(told: Resubmission, *, dry_run: bool) -> str:
    """Return what the decision comes to."""
    return "\n".join(shown(line) for line in _lines(told, dry_run=dry_run))


def resubmit_json(told: Resubmission, *, dry_run: bool) -> JsonObject:
    """Return the same for programs."""
    return VERSION | {
        "output": told.output,
        "written": not dry_run,
        "approval": msgspec.to_builtins(told.approval),
        "attempt_cap": told.cap,
        "owed_before": told.before.owed,
        "owed_after": told.after.owed,
        "command": told.command,
    }


def _lines(told: Resubmission, *, dry_run: bool) -> Iterator[str]:
    approval = told.approval
    yield f"{told.output}: {'would be approved' if dry_run else 'approved'} by {approval.who}"
    yield f"  why: {approval.why}" if approval.why else "  why: not said yet (--why)"
    if approval.attempts_more:
        yield f"  {approval.attempts_more} failures more for every rollout: {told.cap} in all"
    yield from _named("masked results run again", approval.masked)
    yield from _named("held rollouts are released", approval.released)
    runs = "would run" if dry_run else "runs"
    yield f"A resume {runs} {told.after.owed} rollouts; without this it would be {told.before.owed}."
    if told.after.exhausted:
        yield f"  {told.after.exhausted} have used up their attempts: --extend-attempts N gives them more"
    if dry_run:
        yield "Nothing was written (--dry-run)."
    if dry_run and told.is_alive:
        yield "A process works on the run: a decision is taken once it has ended."
    elif told.after.owed:
        yield "Go on with:"
        yield f"  {told.command}"


def _named(what: str, attempts: Sequence[Attempt]) -> Iterator[str]:
    if attempts:
        names = ", ".join(f"{task}-{rollout} attempt {attempt}" for task, rollout, attempt in attempts[:_NAMED])
        more = f" and {len(attempts) - _NAMED} more" if len(attempts) > _NAMED else ""
        yield f"  {len(attempts)} {what}: {names}{more}"
