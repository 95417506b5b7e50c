"""How a report lies on a terminal: a table of agents, then lines.

Rules:
* Nothing in a name is markup, and a path is never broken; with a `width` no word of a line is.
* Whoever prints it chooses width and colours.

Source: cases RC-61, RC-71.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from textwrap import wrap

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from rollbook.records.standing import Coverage
from rollbook.report import words
from rollbook.report.words import HEADINGS, NO_SCORE, WORST_SHOWN
from rollbook.scoring.tally import RunScores


def laid_out(scores: RunScores, coverage: Coverage, files: Mapping[str, Path], width: int | None = None) -> Group:
    """Return the report as something that a rich console prints; without a `width` that breaks its lines."""
    agents = [words.agent_line(score) for score in scores.agents] if len(scores.agents) > 1 else []
    worst = [words.task_line(score) for score in scores.worst_tasks(WORST_SHOWN)]
    return Group(
        *_wrapped(words.warning_lines(scores), width),
        _agents(scores),
        *_wrapped([*words.headline_lines(scores), *agents, *words.coverage_lines(scores, coverage)], width),
        *_section("Tasks to look at first", _wrapped(worst, width)),
        *_section("Files", _whole(words.file_lines(files))),
    )


def _agents(scores: RunScores) -> RenderableType:
    if not scores.agents:
        return Text(NO_SCORE)
    table = Table(box=box.SIMPLE_HEAD)
    for heading in HEADINGS:
        table.add_column(Text(heading), overflow="fold")
    for score in scores.agents:
        table.add_row(*map(Text, words.agent_cells(score, scores.headline(score))))
    return table


def _wrapped(lines: Sequence[str], width: int | None) -> list[Text]:
    if width is None:
        return [Text(line, overflow="fold") for line in lines]
    return _whole(
        [part for line in lines for part in wrap(line, width, break_long_words=False, break_on_hyphens=False)]
    )


def _whole(lines: Sequence[str]) -> list[Text]:
    return [Text(line, no_wrap=True, overflow="ignore") for line in lines]


def _section(heading: str, lines: Sequence[Text]) -> list[Text]:
    return [Text(""), Text(heading, style="bold"), *lines] if lines else []
