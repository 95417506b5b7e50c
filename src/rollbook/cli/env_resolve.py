"""`gym env resolve`: the configuration as a verb would see it.

Rules:
* Secrets are masked; nothing is started.

Source: servers.md §10.2, §1.8.
"""

from typing import Any

import click

from rollbook.cli.flags import config_flags, model_flags, overrides_argument, selector_flags
from rollbook.cli.terminal import say, say_json
from rollbook.cli.verb import VerbCommand, wants_json


@click.command("resolve", cls=VerbCommand, reports=True)
@config_flags
@selector_flags
@model_flags
@overrides_argument
@click.pass_context
def command(context: click.Context, /, **given: Any) -> None:
    """Print the configuration with every include, operator, interpolation and override resolved, secrets masked."""
    from rollbook.cli.configuration import resolved_configuration  # noqa: PLC0415  paid for by this verb alone
    from rollbook.config.missing import resolved  # noqa: PLC0415  as above
    from rollbook.config.secrets import masked, masked_yaml  # noqa: PLC0415  as above

    cfg = resolved_configuration(given, settings={})
    if wants_json(context):
        say_json(masked(resolved(cfg)))
    else:
        say(masked_yaml(cfg).rstrip("\n"))
