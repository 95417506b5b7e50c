"""`gym eval resubmit`: the flags of deciding that rollouts run again.

Rules:
* Nothing is sent and no server is asked; who decides and why is kept in the run's manifest.

Source: collection.md §4.7, §4.10, §5.4.3.
"""

from typing import Any, Final

import click

from rollbook.cli.flags import flags
from rollbook.cli.verb import VerbCommand, wants_json

_options: Final = flags(
    click.option(
        "--extend-attempts", type=click.IntRange(min=1), metavar="N", help="N failures more for each rollout."
    ),
    click.option(
        "--approve-masked",
        metavar="TASK:ROLLOUT[,…]",
        help="Run these masked results again, or all-infrastructure: every one that keeps no model's answer.",
    ),
    click.option("--release-held", is_flag=True, help="Run again what is held for a decision now, answers and all."),
    click.option("--why", metavar="TEXT", help="Why; kept in the manifest (required, but for --dry-run)."),
    click.option("--who", metavar="NAME", help="Who decides.  [default: user@host]"),
    click.option("--dry-run", is_flag=True, help="Show what would run again, and write nothing."),
)


@click.command("resubmit", cls=VerbCommand, reports=True, short_help="Decide that rollouts run again.")
@click.argument("output", metavar="OUTPUT")
@_options
@click.pass_context
def command(context: click.Context, /, output: str, **given: Any) -> None:
    """Decide that rollouts of a run are run again, and keep in its manifest who decided it and why.

    Nothing is sent: the command that goes on with the run is printed. A run that a process works on is refused.
    """
    from rollbook.cli.eval_resubmit_session import resubmit  # noqa: PLC0415  paid for by this verb alone

    resubmit(output, given, as_json=wants_json(context))
