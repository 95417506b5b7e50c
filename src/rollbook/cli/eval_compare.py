"""`gym eval compare`: the flags of comparing runs by their metrics, and by their rows where those are there.

Rules:
* Only files are read; a report is written, and nothing of a run is touched.

Source: collection.md §9.2, §10.7.
"""

from typing import Any, Final

import click

from rollbook.cli.compare_flags import agent_flags, report_flags, row_flags, run_flags
from rollbook.cli.flags import flags
from rollbook.cli.verb import VerbCommand, wants_json

_metric_flags: Final = flags(
    click.option(
        "--baseline-agg-metrics", metavar="PATH", help="The baseline's aggregate metrics, where they lie apart."
    ),
    click.option(
        "--candidates-agg-metrics",
        metavar="PATH[,...]",
        multiple=True,
        help="The candidates' aggregate metrics, where they lie apart (repeatable).",
    ),
    click.option("--no-rows", is_flag=True, help="Compare by aggregate metrics alone."),
)


@click.command("compare", cls=VerbCommand, reports=True, short_help="Compare runs: is a candidate better or worse?")
@run_flags
@_metric_flags
@agent_flags
@report_flags
@row_flags
@click.pass_context
def command(context: click.Context, /, **given: Any) -> int:
    """Compare candidates with a baseline: by aggregate metrics, and by rows where those are there.

    Tasks are paired by what they say. The report goes to compare_report.md and compare_report.json. Exit code: 0; with
    --gate also 6 when a candidate is blocked, and 7 when too little is known to let it pass.
    """
    from rollbook.cli.compare_session import Asked, show_comparison  # noqa: PLC0415  paid for by this verb alone

    return show_comparison(Asked(as_json=wants_json(context), by_metrics=True, **given))
