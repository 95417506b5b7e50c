"""`gym env prefetch`: the flags of making environments ahead of time.

Rules:
* No server is started, and no model is named.

Source: servers.md §10.2, §2.3.
"""

from typing import Any

import click

from rollbook.cli.flags import config_flags, isolation_flags, overrides_argument, selector_flags
from rollbook.cli.verb import VerbCommand, wants_json


@click.command("prefetch", cls=VerbCommand, reports=True)
@config_flags
@selector_flags
@isolation_flags
@overrides_argument
@click.pass_context
def command(context: click.Context, /, **given: Any) -> None:
    """Make the environments of those servers whose packages are missing here, and say which interpreter each has.

    With --isolate-all, those of all servers that do not ship with Rollbook.
    """
    from rollbook.cli.env_prefetch_session import prefetch  # noqa: PLC0415  paid for by this verb alone

    prefetch(given, as_json=wants_json(context))
