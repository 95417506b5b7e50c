"""The report of a run as text whose lines all fit: what a terminal library would make of it, without one.

Rules:
* Where a line would have to be folded, or a character may take two columns, nothing is made: that is the
  library's work.

Source: cases RC-61, RC-71.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Final

from rollbook.records.standing import Coverage
from rollbook.report import words
from rollbook.report.words import HEADINGS, NO_SCORE, WORST_SHOWN
from rollbook.scoring.tally import RunScores

_FIRST_WIDE: Final = 0x300
"""Below it, and among the marks that we write, every printable character takes one column."""
_OURS: Final = frozenset("─…")


def plain(scores: RunScores, coverage: Coverage, files: Mapping[str, Path], width: int) -> str | None:
    """Return the report, or None when something in it does not fit into `width` columns as it is."""
    agents = [words.agent_line(score) for score in scores.agents] if len(scores.agents) > 1 else []
    worst = [words.task_line(score) for score in scores.worst_tasks(WORST_SHOWN)]
    lines = [
        *words.warning_lines(scores),
        *_agents(scores),
        *words.headline_lines(scores),
        *agents,
        *words.coverage_lines(scores, coverage),
        *_section("Tasks to look at first", worst),
    ]
    if any(len(line) > width or not _is_narrow(line) for line in lines):
        return None
    return "\n".join([*lines, *_section("Files", words.file_lines(files))])


def _agents(scores: RunScores) -> Iterator[str]:
    if not scores.agents:
        yield NO_SCORE
        return
    rows = [[cell.split("\n") for cell in words.agent_cells(score, scores.headline(score))] for score in scores.agents]
    heads = [heading.split("\n") for heading in HEADINGS]
    widths = [max(len(line) for row in (heads, *rows) for line in row[column]) for column in range(len(heads))]
    deepest = max(map(len, heads))
    yield from _lines([[""] * (deepest - len(head)) + head for head in heads], widths)
    yield " " + "─" * (sum(widths) + 3 * len(widths) - 1)
    for row in rows:
        yield from _lines(row, widths)
    yield ""


def _lines(row: Sequence[Sequence[str]], widths: Sequence[int]) -> Iterator[str]:
    for cells in zip_longest(*row, fillvalue=""):
        yield ("  " + "   ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True))).rstrip()


def _section(heading: str, lines: Sequence[str]) -> list[str]:
    return ["", heading, *lines] if lines else []


def _is_narrow(line: str) -> bool:
    return line.isascii() or all(ord(character) < _FIRST_WIDE or character in _OURS for character in line)
