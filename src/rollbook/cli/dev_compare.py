"""`gym dev compare`: the flags of comparing runs by their saved rows alone.

Rules:
* Only files are read; a report is written, and nothing of a run is touched.

Source: collection.md §9.2.
"""

from typing import Any

import click

from rollbook.cli.compare_flags import agent_flags, report_flags, row_flags, run_flags
from rollbook.cli.verb import VerbCommand, wants_json


@click.command("compare", cls=VerbCommand, reports=True, short_help="Compare runs by their rows.")
@run_flags
@agent_flags
@report_flags
@row_flags
@click.pass_context
def command(context: click.Context, /, **given: Any) -> int:
    """Compare candidates with a baseline by their saved rows; no aggregate metrics are read.

    Tasks are paired by what they say. The report goes to compare_report.md and compare_report.json. Exit code: 0; with
    --gate also 6 when a candidate is blocked, and 7 when too little is known to let it pass.
    """
    from rollbook.cli.compare_session import Asked, show_comparison  # noqa: PLC0415  paid for by this verb alone

    return show_comparison(Asked(as_json=wants_json(context), by_metrics=False, **given))
