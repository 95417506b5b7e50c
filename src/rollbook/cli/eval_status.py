"""`gym eval status`: the flags of asking a run how it is.

Rules:
* Only files are read; no server is asked, and the run is not disturbed.

Source: collection.md §9.3.
"""

from typing import Final

import click

from rollbook.cli.flags import flags
from rollbook.cli.verb import VerbCommand, wants_json

_options: Final = flags(
    click.option("--watch", is_flag=True, help="Show it again every 2 seconds until the run ends."),
    click.option("--require-complete", is_flag=True, help="End with 4 unless every planned rollout is scored."),
)


@click.command("status", cls=VerbCommand, reports=True, short_help="Show how a run is, and what a resume would do.")
@click.argument("outputs", nargs=-1, required=True, metavar="OUTPUT...")
@_options
@click.pass_context
def command(context: click.Context, /, outputs: tuple[str, ...], *, watch: bool, require_complete: bool) -> int:
    """Show how a run is: every planned rollout accounted for, and what a resume would run and why.

    OUTPUT is a run's output, a folder (every run in it) or a pattern; several runs are listed and summed. The run may
    be going on, dead or finished. Exit code: 0 a resume would run nothing, 3 it would, 4 with --require-complete when
    not everything is scored, 5 when the counts do not add up or a file is damaged.
    """
    from rollbook.cli.loading import loading  # noqa: PLC0415  paid for by this verb alone

    with loading():
        from rollbook.cli.status_session import Asked, show_status  # noqa: PLC0415  the same
        from rollbook.verbs.status import status_with_headlines  # noqa: PLC0415  the same

    return show_status(Asked(outputs, wants_json(context), watch, require_complete), status_with_headlines)
