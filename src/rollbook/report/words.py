"""Scores in words: the cells and lines of a report.

Rules:
* No score stands without what it covers, and no mean without its standard error, or `n/a` where there is none.
* Text from data is shown with its control characters escaped.

Source: collection.md §6.6; cases RC-61, RC-71, RC-74.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from rollbook.scoring.coverage_text import standing_in_words
from rollbook.scoring.estimates import PassAtK
from rollbook.scoring.tally import AgentScore
from rollbook.scoring.worst_tasks import TaskScore

HEADINGS: Final = ("Agent", "Tasks\nscored", "Rollouts\nscored", "Mean ± SE", "pass@k")
NO_SCORE: Final = "No rollout left a record, so there is no score."
WORST_SHOWN: Final = 5

_LARGEST_FIXED: Final = 1e6
_SMALLEST_FIXED: Final = 5e-4
_ROUNDING: Final = 1e-12
"""A standard error this small beside its mean is what adding up left of none."""
_UNDEFINED: Final = "n/a"


def shown(text: object) -> str:
    """Return `text` with everything that is not printable written as an escape."""
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode() for character in str(text)
    )


def number(value: float | None) -> str:
    """Return `value` with three decimals, or four digits where those would say nothing; `n/a` for None."""
    if value is None:
        return _UNDEFINED
    fixed = value == 0 or _SMALLEST_FIXED <= abs(value) < _LARGEST_FIXED
    return f"{value:.3f}" if fixed else f"{value:.3e}"


def mean_with_error(score: AgentScore) -> str:
    """Return the mean and its standard error."""
    if score.mean is None:
        return number(None)
    error = score.standard_error
    is_rounding = error is not None and abs(error) < _ROUNDING * abs(score.mean)
    return f"{number(score.mean)} ± {number(0.0 if is_rounding else error)}"


def pass_at(estimate: PassAtK) -> str:
    """Return one pass@k, and of how many tasks it speaks when others have too few scored rollouts."""
    share = f"@{estimate.k} {number(estimate.value)}"
    every = estimate.tasks + estimate.short_tasks
    return f"{share} ({estimate.tasks} of {every} tasks)" if estimate.short_tasks else share


def agent_cells(score: AgentScore) -> tuple[str, ...]:
    """Return an agent's line of the table: name, tasks scored, rollouts scored, mean with its error, every pass@k."""
    return (
        shown(score.agent),
        f"{score.scored_tasks} of {score.tasks}",
        f"{score.coverage.scored} of {score.coverage.planned}",
        mean_with_error(score),
        "\n".join(map(pass_at, score.pass_at_k)),
    )


def agent_line(score: AgentScore) -> str:
    """Return what one agent's score covers."""
    return shown(f"{score.agent}: {standing_in_words(score.coverage)}")


def task_line(score: TaskScore) -> str:
    """Return one task's mean and what it covers."""
    return shown(f"{score.agent} task {score.task}: mean {number(score.mean)}, {standing_in_words(score.coverage)}")


def file_lines(files: Mapping[str, Path]) -> tuple[str, ...]:
    """Return where the files are, one line each."""
    return tuple(shown(f"{label}: {path}") for label, path in files.items())
