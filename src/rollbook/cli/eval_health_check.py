"""`gym eval health-check`: the flags of checking how well a run's records are.

Rules:
* Files are read; two reports are written beside them, and nothing of the run is changed.
* It takes no overrides: nothing of a configuration is read.

Source: collection.md §7.3.
"""

from typing import Any, Final

import click

from rollbook.cli.flags import flags
from rollbook.cli.verb import VerbCommand, wants_json

_SHARE: Final = click.FloatRange(0, 1)
_options: Final = flags(
    click.option(
        "--rollouts-file",
        metavar="PATH",
        help="The results to check.  [default: rollouts.jsonl in RUN_DIR, else the results of its only run]",
    ),
    click.option(
        "--workers",
        type=click.IntRange(min=1),
        metavar="N",
        help="Processes that check.  [default: as many as there are processors, 8 at most]",
    ),
    click.option("--ignore-checks", "--ignore", metavar="A,B", help="Checks to leave out."),
    click.option("--max-unhealthy", type=_SHARE, metavar="SHARE", help="End with 1 when more records are unhealthy."),
    click.option("--max-failed", type=_SHARE, metavar="SHARE", help="End with 1 when more rollouts failed."),
    click.option("--max-missing", type=_SHARE, metavar="SHARE", help="End with 1 when more rollouts are missing."),
)


@click.command("health-check", cls=VerbCommand, reports=True, short_help="Check how well a run's records are.")
@click.argument("run_dir", metavar="RUN_DIR")
@_options
@click.pass_context
def command(context: click.Context, /, run_dir: str, **given: Any) -> int:
    """Check every saved rollout, and write quality_summary.json and rollout_verdicts.jsonl beside the results.

    RUN_DIR is a run's folder, its output or a file beside it. A rollout is healthy, unhealthy (a check found
    something) or unobserved (a check had nothing to go by). Shares are of the expected rollouts, or of the records
    where there is no plan.

    Exit code: 0, whatever was found; 1 when a file cannot be read or a share is beyond its limit.
    """
    from rollbook.cli.health_session import Asked, show_health  # noqa: PLC0415  paid for by this verb alone

    return show_health(Asked(run_dir, as_json=wants_json(context), **given))
