"""A comparison in sentences, which its text and its Markdown share.

Rules:
* A difference stands beside its interval, and a verdict beside its coverage.
* Text from data is shown with its control characters escaped.

Source: collection.md §9.2.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from rollbook.compare.comparison import Comparison, RowComparison
from rollbook.compare.flips import Change, Flips
from rollbook.compare.gate import RuleOutcome
from rollbook.compare.metric_difference import Ends, MetricComparison, MetricRow
from rollbook.compare.power import Needed
from rollbook.compare.row_difference import PairCounts, RowDifference
from rollbook.compare.side import SideFacts
from rollbook.compare.significance import Signs
from rollbook.compare.verdict import UNKNOWN, Verdict
from rollbook.report.status_words import counts_in_words, number_of
from rollbook.report.words import number, shown

UNDEFINED: Final = "n/a"
METRIC_HEADINGS: Final = ("Metric", "Baseline", "Candidate", "Delta", "95 % interval", "Change")
_PERCENTAGES: Final = ("pass@", "majority@")
_P_SHOWN: Final = 0.001


def signed(value: float | None) -> str:
    """Return a difference with its sign."""
    return UNDEFINED if value is None else f"{'+' if value > 0 else ''}{number(value)}"


def ends(interval: Ends) -> str:
    """Return both ends of an interval."""
    return UNDEFINED if interval is None else f"[{signed(interval[0])}, {signed(interval[1])}]"


def share(value: float) -> str:
    """Return a share as a percentage."""
    return f"{100 * value:.1f} %"


def p_value(value: float | None) -> str:
    """Return a p-value."""
    if value is None:
        return UNDEFINED
    return f"{value:.3f}" if value >= _P_SHOWN else f"{value:.1e}"


def agents_line(agents: Sequence[tuple[str, str]]) -> str | None:
    """Return which agents are compared, where it is more than one with itself."""
    if len(agents) == 1 and agents[0][0] == agents[0][1]:
        return None
    return shown(", ".join(ours if ours == theirs else f"{ours} and {theirs}" for ours, theirs in agents))


def verdict_lines(rows: RowComparison) -> Iterator[str]:
    """Yield the verdict, what it rests on, and what it lacks."""
    found, judgement = rows.difference, rows.judgement
    said = judgement.verdict.value
    if judgement.verdict is Verdict.NO_DIFFERENCE:
        said += f"; {_would_have_been_found(found)}"
    yield said
    if found.difference is not None:
        means = f"mean reward {number(found.candidate_mean)} against {number(found.baseline_mean)}"
        yield f"{means}: {signed(found.difference)}{_interval(found)}"
    yield from judgement.lacking
    if any(lack.endswith(UNKNOWN) for lack in judgement.lacking):
        yield "--assume-complete takes what is there for all that was to be run"


def _would_have_been_found(found: RowDifference) -> str:
    if found.detectable is None:
        return found.needed.why
    if _is_impossible(found.detectable, found):
        return "not even the largest possible difference would have been found in 4 of 5 cases"
    return f"a true difference of {number(found.detectable)} would have been found in 4 of 5 cases"


def _is_impossible(difference: float, found: RowDifference) -> bool:
    return found.largest is not None and difference > found.largest


def _interval(found: RowDifference) -> str:
    low, high = found.interval.low, found.interval.high
    return "" if low is None or high is None else f" {ends((low, high))}, {found.interval.how} over tasks"


def test_line(rows: RowComparison, candidates: int) -> str:
    """Return which test was made, and its p-value."""
    test, p = rows.difference.test, rows.judgement.p_value
    adjusted = f" (adjusted for {candidates} candidates; {p_value(test.p_value)} alone)" if candidates > 1 else ""
    signs = f"; {_signs(test.signs)}" if test.signs else ""
    return f"{test.name}, because of {test.why}: p = {p_value(p)}{adjusted}{signs}"


def _signs(signs: Signs) -> str:
    counts = f"{signs.fell} fell, {signs.rose} rose, sign test p = {p_value(signs.p_value)}"
    return f"one task outweighs all others together, of signs alone: {counts}, which decides nothing"


def coverage_line(name: str, side: SideFacts) -> str:
    """Return how much of a side is scored, and where the rest stands."""
    rest = {state: count for state, count in sorted(side.states.items()) if state != "scored"}
    beside = f"; {counts_in_words(rest)}" if rest else ""
    repeats = str(side.many) if side.few == side.many else f"{side.few} to {side.many}"
    told = f"{name}: {_covered(side)}{beside}"
    return shown(f"{told}; {number_of(side.tasks, 'task')}, {repeats} a task")


def _covered(side: SideFacts) -> str:
    if not side.has_plan:
        return f"{side.scored} rollouts scored, of an unknown number: no plan is there"
    zeros = f", {side.counted} {'counts' if side.counted == 1 else 'count'} as zero" if side.counted else ""
    return f"{side.scored} of {side.expected} rollouts scored{zeros} ({share(side.coverage)})"


def pair_lines(paired: PairCounts, scored_pairs: int) -> Iterator[str]:
    """Yield how tasks were paired, and which have no partner."""
    by = ", ".join(f"{count} by {how}" for how, count in paired.by.items())
    yield f"{number_of(paired.pairs, 'task')} on both sides ({by or 'none'}), {scored_pairs} scored on both"
    if paired.twins:
        yield f"{paired.twins} of them say the same as another task: paired in their order"
    if paired.changed:
        yield f"{paired.changed} of them do not say the same on both sides"
    for side, count, first in (
        ("baseline", paired.only_baseline, paired.first_only_baseline),
        ("candidate", paired.only_candidate, paired.first_only_candidate),
    ):
        if count:
            more = ", …" if count > len(first) else ""
            yield f"{count} in the {side} alone: {', '.join(map(str, first))}{more}"
    if not paired.pairs and set(paired.first_only_baseline) & set(paired.first_only_candidate):
        yield "no task says the same on both sides; --pair-by number pairs tasks of one number"
    ambiguous = max(paired.ambiguous_baseline, paired.ambiguous_candidate)
    if ambiguous:
        told = f"{ambiguous} of those have a prompt or a name that several tasks have, and nothing tells which is which"
        yield f"{told}; --pair-by number takes their numbers for it"


def power_line(rows: RowComparison) -> str:
    """Return what this much data can find, and how much would show what was seen and is not shown."""
    found = rows.difference
    if found.detectable is None:
        return "; ".join([found.needed.why, *_with_tasks(found)])
    finds = f"this much data finds a difference of {number(found.detectable)} in 4 of 5 cases"
    if _is_impossible(found.detectable, found):
        finds = "this much data does not find even the largest possible difference in 4 of 5 cases"
    shows = rows.judgement.verdict in {Verdict.BETTER, Verdict.WORSE}
    return finds if shows else f"{finds}; {needed_words(found.needed, found)}"


def _with_tasks(found: RowDifference) -> Iterator[str]:
    if found.needed.tasks is not None:
        tasks = number_of(found.needed.tasks, "task")
        yield f"a difference of {signed(found.difference)} takes {tasks} with the repeats that they have"


def needed_words(needed: Needed, found: RowDifference) -> str:
    """Return how many repeats or tasks would show the difference."""
    ways = []
    if needed.repeats is not None:
        wanted = number_of(needed.repeats, "repeat")
        ways.append(f"{wanted} of every task on each side{_more(needed.repeats, found)}")
    if needed.tasks is not None:
        ways.append(f"{number_of(needed.tasks, 'task')} with the repeats that they have")
    if not ways:
        return f"how much more would decide it is not known: {needed.why}"
    why = f" ({needed.why})" if needed.repeats is None else ""
    return f"a difference of {signed(found.difference)} takes {', or '.join(ways)}{why}"


def _more(repeats: int, found: RowDifference) -> str:
    """Return how many repeats more that are, side by side."""
    more = [repeats - side.few for side in (found.baseline, found.candidate)]
    return f" ({more[0]} more of the baseline, {more[1]} more of the candidate)" if min(more) > 0 else ""


def bounds_line(found: RowDifference) -> str | None:
    """Return between what the difference would lie whatever is missing; None where nothing is, or nothing bounds it."""
    bounds = found.bounds
    if bounds is None or (bounds.low == bounds.high):
        return None
    missing = "what is missing" if found.has_plans else "what is known to be missing"
    return f"between {signed(bounds.low)} and {signed(bounds.high)}, if {missing} were the worst or the best case"


def transition_lines(transitions: Mapping[tuple[str, str], int]) -> Iterator[str]:
    """Yield each change of state with its count."""
    for (before, after), count in transitions.items():
        yield shown(f"{count}: {before} → {after}")


def flips_line(flips: Flips) -> str:
    """Return how many tasks flipped, or moved."""
    if flips.kind == "binary":
        tied = f", {flips.tied} tied at one half" if flips.tied else ""
        return f"{flips.regressed} regressed, {flips.improved} improved, of {flips.tasks}{tied}"
    return f"{flips.regressed} fell, {flips.improved} rose, of {flips.tasks}"


def change_line(change: Change) -> str:
    """Return one task that changed: means, and the rewards of its repeats."""
    same = change.baseline_task == change.candidate_task
    task = f"task {change.baseline_task}" if same else f"task {change.baseline_task} (there {change.candidate_task})"
    moved = f"{number(change.baseline)} → {number(change.candidate)}"
    return f"{task}: {moved}  {_rewards(change.baseline_rewards)} → {_rewards(change.candidate_rewards)}"


def _rewards(rewards: Sequence[float]) -> str:
    return f"[{' '.join(f'{reward:g}' for reward in rewards)}]" if rewards else ""


def metric_cells(row: MetricRow) -> tuple[str, ...]:
    """Return one metric's line of the table."""
    percent = UNDEFINED if row.percent is None else f"{row.percent:+.1f} %"
    delta = ends(row.delta_interval) if row.delta_interval else UNDEFINED
    return (shown(_with_unit(row)), number(row.baseline), number(row.candidate), signed(row.delta), delta, percent)


def _with_unit(row: MetricRow) -> str:
    """Return a metric's name, and that it is a percentage where it is one by the field's convention."""
    largest = max(row.baseline or 0.0, row.candidate or 0.0)
    return f"{row.name} (%)" if row.name.startswith(_PERCENTAGES) and largest > 1 else row.name


def populations_line(comparison: MetricComparison) -> str | None:
    """Return over which rollouts either side's metrics are, where that is not all that were planned."""
    ours, theirs = comparison.coverage
    if ours is not None and theirs is not None and min(ours, theirs) >= 1:
        return None
    told = (
        f"{name} {UNDEFINED if part is None else share(part)}"
        for name, part in (("baseline", ours), ("candidate", theirs))
    )
    return (
        f"Each side over what it scored itself, not over tasks that both scored: of what was planned, {', '.join(told)}"
    )


def rule_line(rule: RuleOutcome) -> str:
    """Return one rule with its numbers."""
    numbers = f"{found_in_words(rule)}, limit {plain_number(rule.limit)}"
    return shown(f"{rule.ruling.value}: {rule.tier} ({rule.metric}) {rule.rule}: {numbers}: {rule.why}")


def found_in_words(rule: RuleOutcome) -> str:
    """Return what a rule found; a drop below zero is none."""
    is_drop = rule.rule in {"max_drop", "max_relative_drop"}
    if is_drop and rule.found is not None and rule.found < 0:
        return f"better by {plain_number(-rule.found)}"
    return plain_number(rule.found)


def plain_number(value: float | None) -> str:
    """Return a number of a rule; a whole one as it is."""
    is_whole = value is not None and math.isfinite(value) and value == int(value)
    return f"{value:.0f}" if value and is_whole else "0" if is_whole else number(value)


def notes_of(comparison: Comparison) -> list[str]:
    """Return everything that has to be said beside the numbers."""
    skipped = comparison.skipped_agents
    told = [f"agents that are not compared: {', '.join(skipped)}"] if skipped else []
    of_metrics = [warning for each in comparison.candidates for part in each.metrics for warning in part.warnings]
    of_rows = [note for each in comparison.candidates if each.rows for note in each.rows.notes]
    return list(map(shown, dict.fromkeys([*told, *comparison.warnings, *of_metrics, *of_rows])))
