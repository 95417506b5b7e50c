"""A comparison as text for a terminal: the verdict first, then what it rests on.

Rules:
* Lines are 80 columns wide where words allow it.

Source: collection.md §9.2.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from rollbook.compare.comparison import Candidate, Comparison, RowComparison
from rollbook.compare.flips import Change
from rollbook.compare.metric_difference import MetricComparison
from rollbook.report import compare_words as words
from rollbook.report.status_words import WIDTH, item, labelled
from rollbook.report.words import shortened, shown

_MARGIN: Final = 11
_METRICS_SHOWN: Final = 40
_GAP: Final = 2
_NAME: Final = 16
"""A metric's name is never shown in fewer columns; reports in Markdown and JSON have it whole."""
_FLIPS_SHOWN: Final = 3
"""Of each direction; a report file holds all that are listed."""


def compare_text(comparison: Comparison) -> str:
    """Return the comparison as plain text."""
    lines = list(labelled("Baseline", shown(comparison.baseline), _MARGIN))
    for candidate in comparison.candidates:
        lines += ["", *_candidate(candidate, len(comparison.candidates), comparison.policy)]
    lines += _section("Notes", (line for note in words.notes_of(comparison) for line in item(note)))
    if comparison.ruling is not None and len(comparison.candidates) > 1:
        lines += ["", f"Gate: {comparison.ruling.value} ({shown(comparison.policy)})"]
    return "\n".join(lines)


def _candidate(candidate: Candidate, candidates: int, policy: str | None) -> Iterator[str]:
    yield from labelled("Candidate", shown(candidate.label), _MARGIN)
    if candidate.rows is not None:
        yield from _rows(candidate.rows, candidates)
    for comparison in candidate.metrics:
        yield from _metrics(comparison)
    if candidate.ruling is not None:
        rules = (line for rule in candidate.rules for line in item(words.rule_line(rule)))
        beside = "" if candidates > 1 else f" ({shown(policy)})"
        yield from _section(f"Gate: {candidate.ruling.value}{beside}", rules)


def _rows(rows: RowComparison, candidates: int) -> Iterator[str]:
    found = rows.difference
    agents = words.agents_line(rows.agents)
    yield from labelled("Agents", agents, _MARGIN) if agents else []
    for number, line in enumerate(words.verdict_lines(rows)):
        yield from labelled("Verdict" if number == 0 else "", line, _MARGIN)
    yield from labelled("Test", words.test_line(rows, candidates), _MARGIN)
    yield from labelled("Power", words.power_line(rows), _MARGIN)
    for number, (name, side) in enumerate((("baseline", found.baseline), ("candidate", found.candidate))):
        yield from labelled("" if number else "Coverage", words.coverage_line(name, side), _MARGIN)
    bounds = words.bounds_line(found)
    yield from labelled("Bounds", bounds, _MARGIN) if bounds else []
    for number, line in enumerate(words.pair_lines(found.paired, found.scored_pairs)):
        yield from labelled("" if number else "Tasks", line, _MARGIN)
    for number, line in enumerate(words.transition_lines(rows.transitions)):
        yield from labelled("" if number else "Rollouts", line, _MARGIN)
    yield from labelled("Flips", words.flips_line(rows.flips), _MARGIN)
    for direction in (-1, 1):
        changes = [change for change in rows.flips.listed if change.delta * direction > 0]
        for change in changes[:_FLIPS_SHOWN]:
            yield from _change(change)


def _change(change: Change) -> Iterator[str]:
    yield from item(words.change_line(change))
    for name, answer in (("baseline", change.baseline_answer), ("candidate", change.candidate_answer)):
        if answer is not None:
            yield from item(f"{name}: {shown(answer)}", 2)


def _metrics(comparison: MetricComparison) -> Iterator[str]:
    yield from ["", shown(f"Metrics of {_agents(comparison)}")]
    populations = words.populations_line(comparison)
    yield from item(populations) if populations else []
    yield from _table([words.METRIC_HEADINGS, *map(words.metric_cells, comparison.metrics[:_METRICS_SHOWN])])
    if len(comparison.metrics) > _METRICS_SHOWN:
        yield f"  and {len(comparison.metrics) - _METRICS_SHOWN} more; the report file and --json have all"
    yield f"  Flips by task number: {words.flips_line(comparison.flips)}"


def _table(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield rows as lines; where lines would be too long, names are shortened unless two became one."""
    others = [max(map(len, column)) for column in list(zip(*rows, strict=True))[1:]]
    room = max(_NAME, WIDTH - sum(others) - _GAP * (len(others) + 1))
    short = [shortened(row[0], room) for row in rows]
    names = [row[0] if short.count(one) > 1 else one for one, row in zip(short, rows, strict=True)]
    widths = [max(map(len, names)), *others]
    for name, row in zip(names, rows, strict=True):
        cells = zip((name, *row[1:]), widths, strict=True)
        yield (" " * _GAP + (" " * _GAP).join(cell.ljust(width) for cell, width in cells)).rstrip()


def _agents(comparison: MetricComparison) -> str:
    ours, theirs = comparison.baseline_agent, comparison.candidate_agent
    return ours if ours == theirs else f"{ours} and {theirs}"


def _section(heading: str, lines: Iterator[str]) -> list[str]:
    told = list(lines)
    return ["", heading, *told] if told else []
