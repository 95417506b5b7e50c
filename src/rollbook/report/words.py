"""Scores in words: the cells and lines of a report.

Rules:
* No score stands without what it covers, and no mean without its standard error, or `n/a` where there is none.
* A headline is one line, and what qualifies it follows, indented; where it is withheld, it is said why.
* Text from data is shown with its control characters escaped.

Source: collection.md §6.6; cases RC-61, RC-71, RC-74.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from rollbook.records.coverage import Coverage
from rollbook.records.headline import Headline, Range
from rollbook.scoring.coverage_text import coverage_line, standing_in_words
from rollbook.scoring.estimates import PassAtK
from rollbook.scoring.retry_bias import RetryBias
from rollbook.scoring.tally import AgentScore, RunScores
from rollbook.scoring.worst_tasks import TaskScore

HEADINGS: Final = ("Agent", "Tasks\nscored", "Rollouts\nscored", "Mean ± SE", "pass@k")
NO_SCORE: Final = "No rollout left a record, so there is no score."
BEYOND_REWARDS: Final = (
    "the interval reaches beyond 0 to 1, where every reward lies: it is rough so near an end, or of so few tasks"
)
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


def shortened(text: str, room: int) -> str:
    """Return `text` in at most `room` columns, its middle left out where it is longer."""
    if len(text) <= room:
        return text
    end = room // 2
    return f"{text[: room - end - 1]}…{text[len(text) - end :]}"


def number(value: float | None) -> str:
    """Return `value` with three decimals, or four digits where those would say nothing; `n/a` for None."""
    if value is None:
        return _UNDEFINED
    fixed = value == 0 or _SMALLEST_FIXED <= abs(value) < _LARGEST_FIXED
    return f"{value:.3f}" if fixed else f"{value:.3e}"


def mean_with_error(headline: Headline) -> str:
    """Return the headline and its standard error; where it is withheld, that there is none."""
    observed = headline.observed
    if observed.mean is None:
        return number(None)
    if headline.withheld:
        return "no headline"
    return _with_error(observed.mean, observed.standard_error)


def _with_error(mean: float, error: float | None) -> str:
    is_rounding = error is not None and abs(error) < _ROUNDING * abs(mean)
    return f"{number(mean)} ± {number(0.0 if is_rounding else error)}"


def pass_at(estimate: PassAtK) -> str:
    """Return one pass@k, and of how many tasks it speaks when others have too few scored rollouts."""
    share = f"@{estimate.k} {number(estimate.value)}"
    every = estimate.tasks + estimate.short_tasks
    return f"{share} ({estimate.tasks} of {every} tasks)" if estimate.short_tasks else share


def warning_lines(scores: RunScores) -> list[str]:
    """Return what puts the scores in doubt."""
    return [shown(f"WARNING: {warning}") for warning in scores.warnings]


def headline_lines(scores: RunScores) -> list[str]:
    """Return every agent's headline with what qualifies it, and how retried rollouts compare."""
    lines = [line for score in scores.agents for line in headline_in_words(score.agent, scores.headline(score))]
    return [*lines, *map(retry_line, scores.retries)]


def headline_in_words(agent: str, headline: Headline) -> list[str]:
    """Return an agent's headline, and indented what qualifies it, or why there is none."""
    return [f"{shown(agent)}: {_headline(headline)}", *(f"  {line}" for line in _qualified(headline))]


def _headline(headline: Headline) -> str:
    observed = headline.observed
    if headline.value is None:
        return "no headline"
    reach = f"95 % interval {_range(headline.interval)}" if headline.interval else "no interval"
    tasks = "1 task" if observed.tasks == 1 else f"{observed.tasks} tasks"
    return f"{_with_error(headline.value, observed.standard_error)} over {tasks}, {reach}"


def _qualified(headline: Headline) -> list[str]:
    observed = headline.observed
    lines = [headline.withheld] if headline.withheld else []
    if headline.value is not None and headline.interval_beyond_rewards:
        lines.append(BEYOND_REWARDS)
    if headline.withheld and observed.mean is not None:
        lines.append(f"observed all the same: {_with_error(observed.mean, observed.standard_error)}")
    if observed.imputed:
        lines.append(f"{observed.imputed} of the {observed.rollouts} measured rollouts count as zero by choice")
    if observed.rollouts < observed.planned and not headline.withheld:
        lines.append(f"speaks for {observed.rollouts} of {observed.planned} rollouts ({100 * headline.coverage:.1f} %)")
    if observed.rollouts < observed.planned and headline.bounds is not None:
        lines.append(f"were the others all 0 or all 1, it would be {_range(headline.bounds)}")
    return lines


def _range(found: Range) -> str:
    return f"{number(found.low)} to {number(found.high)}"


def retry_line(bias: RetryBias) -> str:
    """Return how rollouts that needed several attempts score beside those that needed one."""
    name = "" if bias.agent is None else f"{shown(bias.agent)}: "
    reach = f" (95 % {_range(bias.interval)})" if bias.interval else ""
    means = (
        f"retried {number(bias.later_mean)} of {bias.later}, first attempt {number(bias.first_mean)} of {bias.first}"
    )
    clear = "; retrying changes what is measured" if bias.is_clear else ""
    return f"{name}{means}: difference {number(bias.difference)}{reach}{clear}"


def agent_cells(score: AgentScore, headline: Headline) -> tuple[str, ...]:
    """Return an agent's line of the table: name, tasks scored, rollouts scored, mean with its error, every pass@k."""
    return (
        shown(score.agent),
        f"{score.scored_tasks} of {score.tasks}",
        f"{score.coverage.scored} of {score.coverage.planned}",
        mean_with_error(headline),
        "\n".join(map(pass_at, score.pass_at_k)),
    )


def coverage_lines(scores: RunScores, coverage: Coverage) -> list[str]:
    """Return what became of the planned rollouts, and what of them the metrics speak for."""
    return [shown(line) for line in (coverage_line(coverage), *scores.covers)]


def agent_line(score: AgentScore) -> str:
    """Return what one agent's score covers."""
    return shown(f"{score.agent}: {standing_in_words(score.coverage)}")


def task_line(score: TaskScore) -> str:
    """Return one task's mean and what it covers."""
    return shown(f"{score.agent} task {score.task}: mean {number(score.mean)}, {standing_in_words(score.coverage)}")


def file_lines(files: Mapping[str, Path]) -> tuple[str, ...]:
    """Return where the files are, one line each."""
    return tuple(shown(f"{label}: {path}") for label, path in files.items())
