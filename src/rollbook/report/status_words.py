"""The words that a run's status is told in: the law, the reasons, durations, and where lines break.

Rules:
* A line is at most `WIDTH` columns wide where words allow it; a path and a command are never broken.
* Text from data is shown with its control characters escaped.

Source: collection.md §9.3; cases RC-61, RC-71.
"""

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from rollbook.records.run_status import Damage, RunState
from rollbook.records.standing import Coverage
from rollbook.report.words import shown

WIDTH: Final = 80
DAMAGE_SHOWN: Final = 20
_MINUTE: Final = 60
_HOUR: Final = 3600

STATES: Final[Mapping[RunState, str]] = {
    RunState.RUNNING: "running: a process works on it",
    RunState.INTERRUPTED: "not finished: no process works on it, and something is owed",
    RunState.FINISHED: "finished: no process works on it, and nothing is owed",
    RunState.DAMAGED: "damaged: its files contradict each other, or cannot be read",
}
REASONS: Final[Mapping[str, str]] = {
    "retryable": "failed, and the cap leaves another attempt",
    "interrupted": "an attempt ended without a result; it is not charged",
    "never started": "planned, and deliberately not sent",
    "untouched": "nothing was written about them yet",
    "masked, approved to run again": "an operator approved it",
    "of a task that runs again whole": "its repeats are scored together, and not all of them are there",
    "scored": "a reward counts",
    "masked": "a reward was given that is no measurement",
    "unscored": "a result without a reward",
    "settled": "failed for good",
    "exhausted": "failed as often as the cap allows",
    "held": "left to a decision: gym eval reverify has kept answers judged, --resubmit runs them again",
}
"""Why a resume would run a rollout or leave it, in the words of `RunStatus.owed_by` and `not_owed_by`."""


def damaged_places(damages: Sequence[Damage], margin: str) -> Iterator[str]:
    """Yield what is damaged, file and line; of very many places the first ones."""
    for damage in damages[:DAMAGE_SHOWN]:
        yield f"{margin}{shown(damage.place)}: {shown(damage.what)}"
    if len(damages) > DAMAGE_SHOWN:
        yield f"{margin}and {len(damages) - DAMAGE_SHOWN} more places; --json names all"


def law_in_words(coverage: Coverage, *, has_plan: bool = True) -> str:
    """Return the conservation law with its numbers, and whether it holds; without a plan, of what records name."""
    parts = {
        "scored": coverage.scored,
        "masked": coverage.masked,
        "unscored": coverage.unscored,
        f"failed ({_failed_in_words(coverage)})": coverage.failed,
        f"interrupted ({coverage.held_interrupted} held)": coverage.interrupted,
        "never started": coverage.never_started,
        "in flight": coverage.in_flight,
        "untouched": coverage.untouched,
    }
    sides = " + ".join(f"{count} {name}" for name, count in parts.items())
    beyond = f", and {coverage.unplanned} beyond the plan" if coverage.unplanned else ""
    whole = f"{coverage.planned} {'planned' if has_plan else 'recorded, no plan,'}"
    return f"{whole} = {sides}{beyond}: {'holds' if coverage.law_holds else 'VIOLATED'}"


def _failed_in_words(coverage: Coverage) -> str:
    settled = f"{coverage.settled} settled, {coverage.exhausted} exhausted"
    return f"{coverage.retryable} retryable, {settled}, {coverage.held} held"


def reason_line(reason: str, count: int) -> str:
    """Return one reason with how many rollouts it covers."""
    why = REASONS.get(reason)
    return shown(f"{count} {reason}" + (f" ({why})" if why else ""))


def counts_in_words(counts: Mapping[str, int]) -> str:
    """Return the counts that are not zero, for example `2 scored, 1 settled`."""
    return shown(", ".join(f"{count} {name}" for name, count in counts.items() if count)) or "none"


def number_of(count: int, thing: str) -> str:
    """Return `count` with its noun."""
    return f"{count} {thing}" if count == 1 else f"{count} {thing}s"


def duration(seconds: float | None) -> str:
    """Return a duration for people, or `n/a` for None."""
    if seconds is None:
        return "n/a"
    if seconds < _MINUTE:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < _HOUR:
        return f"{whole // _MINUTE} min {whole % _MINUTE} s"
    return f"{whole // _HOUR} h {whole % _HOUR // _MINUTE} min"


def labelled(label: str, text: str, margin: int) -> list[str]:
    """Return `text` beside `label`, later lines under the first; a word is never broken."""
    return _filled(text, label.ljust(margin), " " * margin)


def item(text: str, depth: int = 1) -> list[str]:
    """Return `text` as an item of a list, later lines indented further."""
    return _filled(text, "  " * depth, "  " * (depth + 1))


def _filled(text: str, first: str, rest: str) -> list[str]:
    lines = textwrap.wrap(
        text,
        WIDTH,
        initial_indent=first,
        subsequent_indent=rest,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return lines or [first.rstrip()]
