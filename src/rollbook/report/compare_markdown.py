"""A comparison as Markdown: what is pasted into a pull request.

Rules:
* No text from data ends a cell or opens a tag.

Source: collection.md §9.2.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from rollbook.compare.comparison import Candidate, Comparison, RowComparison
from rollbook.compare.flips import Change, Flips
from rollbook.compare.gate import RuleOutcome
from rollbook.compare.metric_difference import MetricComparison
from rollbook.report import compare_words as words
from rollbook.report.words import number, shown

_ESCAPED: Final = str.maketrans({"|": "\\|", "<": "&lt;", ">": "&gt;", "`": "\\`", "*": "\\*", "_": "\\_", "[": "\\["})


def compare_markdown(comparison: Comparison) -> str:
    """Return the report as Markdown, with a line break at its end."""
    lines = ["# Comparison", "", f"Baseline: {_plain(comparison.baseline)}"]
    if comparison.ruling is not None:
        lines += ["", f"**Gate: {comparison.ruling.value}** ({_plain(comparison.policy)})"]
    for candidate in comparison.candidates:
        lines += _candidate(candidate, len(comparison.candidates))
    lines += _section("## Notes", [f"* {_plain(note)}" for note in words.notes_of(comparison)])
    return "\n".join(lines) + "\n"


def _candidate(candidate: Candidate, candidates: int) -> Iterator[str]:
    yield from ["", f"## {_plain(candidate.label)}"]
    if candidate.ruling is not None:
        yield from ["", f"Gate: **{candidate.ruling.value}**", ""] if candidates > 1 else [""]
        yield from _table(("Ruling", "Tier", "Metric", "Rule", "Found", "Limit", "Why"), map(_rule, candidate.rules))
    if candidate.rows is not None:
        yield from _rows(candidate.rows, candidates)
    for comparison in candidate.metrics:
        yield from _metrics(comparison)


def _rows(rows: RowComparison, candidates: int) -> Iterator[str]:
    found = rows.difference
    verdict, *rest = words.verdict_lines(rows)
    yield from ["", f"Verdict: **{verdict}**", ""]
    agents = words.agents_line(rows.agents)
    yield from [f"* Agents: {_plain(agents)}"] if agents else []
    yield from (f"* {_plain(line)}" for line in rest)
    yield f"* Test: {_plain(words.test_line(rows, candidates))}"
    yield f"* Power: {_plain(words.power_line(rows))}"
    for name, side in (("baseline", found.baseline), ("candidate", found.candidate)):
        yield f"* Coverage: {_plain(words.coverage_line(name, side))}"
    bounds = words.bounds_line(found)
    yield from [f"* Bounds: {_plain(bounds)}"] if bounds else []
    yield from (f"* Tasks: {_plain(line)}" for line in words.pair_lines(found.paired, found.scored_pairs))
    yield from ["", "### From state to state", ""]
    moved = [(before, after, str(count)) for (before, after), count in rows.transitions.items()]
    yield from _table(("Baseline", "Candidate", "Rollouts"), moved)
    yield from ["", "### Flips", "", _plain(words.flips_line(rows.flips))]
    yield from _flips(rows.flips)


def _metrics(comparison: MetricComparison) -> Iterator[str]:
    agents = dict.fromkeys([comparison.baseline_agent, comparison.candidate_agent])
    yield from ["", f"### Metrics of {_plain(' and '.join(agents))}", ""]
    populations = words.populations_line(comparison)
    yield from [_plain(populations), ""] if populations else []
    yield from _table(words.METRIC_HEADINGS, map(words.metric_cells, comparison.metrics))
    yield from ["", f"Flips by task number: {_plain(words.flips_line(comparison.flips))}"]
    yield from _flips(comparison.flips)


def _flips(flips: Flips) -> Iterator[str]:
    if flips.listed:
        yield ""
        headings = ("Task", "Baseline", "Candidate", "Delta", "Baseline answered", "Candidate answered")
        yield from _table(headings, map(_change, flips.listed))


def _change(change: Change) -> tuple[str, ...]:
    same = change.baseline_task == change.candidate_task
    task = str(change.baseline_task) if same else f"{change.baseline_task} / {change.candidate_task}"
    before, after = (
        _values(change.baseline, change.baseline_rewards),
        _values(change.candidate, change.candidate_rewards),
    )
    return (
        task,
        before,
        after,
        words.signed(change.delta),
        change.baseline_answer or "",
        change.candidate_answer or "",
    )


def _values(mean: float, rewards: Sequence[float]) -> str:
    listed = " ".join(f"{reward:g}" for reward in rewards)
    return f"{number(mean)} ({listed})" if listed else number(mean)


def _rule(rule: RuleOutcome) -> tuple[str, ...]:
    found, limit = words.found_in_words(rule), words.plain_number(rule.limit)
    return (rule.ruling.value, rule.tier, rule.metric, rule.rule, found, limit, rule.why)


def _table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(headings)} |"
    yield f"|{'---|' * len(headings)}"
    yield from (f"| {' | '.join(map(_plain, row))} |" for row in rows)


def _plain(text: object) -> str:
    return shown(text).translate(_ESCAPED)


def _section(heading: str, lines: Sequence[str]) -> list[str]:
    return ["", heading, "", *lines] if lines else []
