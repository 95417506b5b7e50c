"""`gym env status`: the flags of asking a deployment how it is.

Rules:
* The head server is asked which servers there are; each of them is asked whether it answers.

Source: servers.md §2.2, §10.2.
"""

from typing import Any

import click

from rollbook.cli.flags import config_flags, overrides_argument
from rollbook.cli.verb import VerbCommand, wants_json


@click.command("status", cls=VerbCommand, reports=True)
@config_flags
@overrides_argument
@click.pass_context
def command(context: click.Context, /, **given: Any) -> int:
    """Show every server of the running deployment, and whether it answers.

    Exit code: 0 every server answers, 1 one does not, or nothing is running.
    """
    from rollbook.cli.env_session import show_status  # noqa: PLC0415  paid for by this verb alone

    return show_status(given, as_json=wants_json(context))
