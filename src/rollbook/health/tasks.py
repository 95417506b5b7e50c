"""The records of a task → the verdicts of its repeats, and what the checks of a task say.

Rules:
* Copies of one repeat are one repeat: its verdict where all agree, else unobserved.
* A task whose evidence does not suffice is unobserved, never well.

Source: collection.md §7.2.
"""

from collections import Counter
from collections.abc import Sequence

import msgspec

from rollbook.health.checks import BIT, CONSISTENTLY_UNHEALTHY, NO_SUCCESSFUL_CALLS
from rollbook.health.finding import Verdict

_FEWEST = 2


class Repeat(msgspec.Struct, frozen=True):
    """One repeat of a task: its verdict, whether its turns' calls are all known, and whether one of them succeeded."""

    verdict: Verdict
    is_bound: bool
    has_success: bool


class TaskHealth(msgspec.Struct, frozen=True):
    """What is said of a task; `flagged` and `unobserved` are bits of the table of checks."""

    repeats: int
    verdicts: Counter[Verdict]
    flagged: int
    unobserved: int


def one_repeat(copies: Sequence[Repeat]) -> Repeat:
    """Return the repeat that `copies` are of."""
    if len(copies) == 1:
        return copies[0]
    verdicts = {copy.verdict for copy in copies}
    verdict = verdicts.pop() if len(verdicts) == 1 else Verdict.UNOBSERVED
    return Repeat(verdict, all(copy.is_bound for copy in copies), any(copy.has_success for copy in copies))


def task_health(repeats: Sequence[Repeat], ignored: int) -> TaskHealth:
    """Return what the checks of a task, but for the `ignored` ones, say."""
    flagged = unobserved = 0
    for name, result in (
        (CONSISTENTLY_UNHEALTHY, consistently_unhealthy(repeats)),
        (NO_SUCCESSFUL_CALLS, no_successful_calls(repeats)),
    ):
        flagged |= BIT[name] if result else 0
        unobserved |= BIT[name] if result is None else 0
    verdicts = Counter(repeat.verdict for repeat in repeats)
    return TaskHealth(len(repeats), verdicts, flagged & ~ignored, unobserved & ~ignored)


def consistently_unhealthy(repeats: Sequence[Repeat]) -> bool | None:
    """Whether every repeat that was observed is unhealthy; None with fewer than two of them."""
    known = [repeat for repeat in repeats if repeat.verdict is not Verdict.UNOBSERVED]
    if len(known) < _FEWEST:
        return None
    return all(repeat.verdict is Verdict.UNHEALTHY for repeat in known)


def no_successful_calls(repeats: Sequence[Repeat]) -> bool | None:
    """Whether no repeat has a call that succeeded; None when the calls of one are not all known."""
    if not all(repeat.is_bound for repeat in repeats):
        return None
    return not any(repeat.has_success for repeat in repeats)
