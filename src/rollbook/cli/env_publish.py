"""`gym env publish`: whether an environment can be given to others.

Rules:
* It is checked strictly, and its place in the catalogue too; nothing is sent anywhere.

Source: servers.md §10.2.
"""

from typing import Any

import click

from rollbook.cli.verb import VerbCommand, wants_json


@click.command("publish", cls=VerbCommand, reports=True, short_help="Check that an environment can be published.")
@click.argument("name", required=False, metavar="NAME")
@click.option("--kind", type=click.Choice(["environment", "benchmark"]), help="The shelf on which NAME lies.")
@click.option("--search-dir", metavar="DIR", multiple=True, help="Look for the environment here first (repeatable).")
@click.pass_context
def command(context: click.Context, /, **given: Any) -> int:
    """Check the environment NAME strictly, and that others find it: its name, its README, its tests. Nothing is sent.

    Exit code: 0 it can be published, 1 something is to be mended first, 2 a name that no root holds.
    """
    from rollbook.cli.env_publish_session import publish  # noqa: PLC0415  paid for by this verb alone

    if given["name"] is None:
        raise click.UsageError("name the environment: gym env publish NAME.")
    return publish(given, as_json=wants_json(context))
