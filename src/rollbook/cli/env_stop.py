"""`gym env stop`: the flags of stopping a deployment.

Rules:
* What `gym env start` keeps up on the configured head address is stopped; nothing else is touched.

Source: servers.md §2.3.
"""

from typing import Any

import click

from rollbook.cli.flags import config_flags, overrides_argument
from rollbook.cli.verb import VerbCommand, wants_json


@click.command("stop", cls=VerbCommand, reports=True)
@config_flags
@overrides_argument
@click.pass_context
def command(context: click.Context, /, **given: Any) -> None:
    """Stop the servers that gym env start keeps up, and say which ones had to be killed."""
    from rollbook.cli.env_session import stop_started_environment  # noqa: PLC0415  paid for by this verb alone

    stop_started_environment(given, as_json=wants_json(context))
