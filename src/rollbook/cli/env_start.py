"""`gym env start`: the flags of a deployment.

Rules:
* One process for each server; the command stays until it is interrupted, or a server dies.

Source: servers.md §10.2, §2.3.
"""

from typing import Any

import click

from rollbook.cli.flags import config_flags, isolation_flags, model_flags, overrides_argument, selector_flags
from rollbook.cli.verb import VerbCommand, is_verbose


@click.command("start", cls=VerbCommand)
@config_flags
@selector_flags
@model_flags
@isolation_flags
@click.option("--log-dir", "nemo_gym_log_dir", metavar="DIR", help="Where servers write their logs.")
@overrides_argument
@click.pass_context
def command(context: click.Context, /, **given: Any) -> None:
    """Start the servers of the configuration, say where they listen, and keep them up until interrupted."""
    from rollbook.cli.env_session import keep_environment_up  # noqa: PLC0415  servers are paid for by this verb alone

    keep_environment_up(given, verbose=is_verbose(context))
