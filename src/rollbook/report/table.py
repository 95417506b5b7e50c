"""The report of a run as text: who did how well, over what, where to look first, and where the files are.

Rules:
* As a string, the report is 80 columns wide and holds no colour codes; no path and no word of a line is ever broken.
* The terminal library is loaded for a report that has to be folded, and no sooner.

Source: collection.md §6.6; cases RC-61, RC-71.
"""

from collections.abc import Mapping
from io import StringIO
from pathlib import Path
from typing import Final

from rollbook.records.standing import Coverage
from rollbook.report.plain import plain
from rollbook.scoring.tally import RunScores

WIDTH: Final = 80


def render(scores: RunScores, coverage: Coverage, files: Mapping[str, Path]) -> str:
    """Return the report as plain text."""
    return plain(scores, coverage, files, WIDTH) or folded(scores, coverage, files)


def folded(scores: RunScores, coverage: Coverage, files: Mapping[str, Path]) -> str:
    """Return the report as plain text, whatever has to be folded for it."""
    from rich.console import Console  # noqa: PLC0415  loading it costs more than `gym --help`

    from rollbook.report.layout import laid_out  # noqa: PLC0415  the same

    text = StringIO()
    console = Console(file=text, width=WIDTH, color_system=None, force_terminal=False, legacy_windows=False)
    console.print(laid_out(scores, coverage, files, WIDTH), crop=False)
    return "\n".join(line.rstrip() for line in text.getvalue().splitlines()).strip("\n")
