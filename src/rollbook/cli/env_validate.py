"""`gym env validate`: the flags of checking a configuration, or an environment without its servers.

Rules:
* With a name or a manifest an environment is checked, without one the configuration that the other flags name.

Source: servers.md §10.2, §8.12.
"""

from typing import Any, Final

import click

from rollbook.cli.flags import config_flags, flags, model_flags, selector_flags
from rollbook.cli.verb import VerbCommand, wants_json

_of_an_environment: Final = flags(
    click.option("--kind", type=click.Choice(["environment", "benchmark"]), help="The shelf on which NAME lies."),
    click.option("--manifest", "manifest_path", metavar="PATH", help="The manifest to check, wherever it lies."),
    click.option("--sync", is_flag=True, help="Write the manifest's composition as its configuration has it."),
    click.option("--strict", is_flag=True, help="Take warnings, and what could not be checked, for errors."),
)


@click.command("validate", cls=VerbCommand, reports=True, short_help="Check an environment, or a configuration.")
@click.argument("words", nargs=-1, metavar="[NAME] [KEY=VALUE]...")
@_of_an_environment
@config_flags
@selector_flags
@model_flags
@click.pass_context
def command(context: click.Context, /, **given: Any) -> int:
    """Check the environment NAME as it lies there, or the configuration that flags name. Nothing is served.

    Of an environment: its configuration, its manifest, its rows, its licence, and whether its verifier gives gold
    answers the best reward and empty ones a bad one.

    Exit code: 0 nothing is wrong, 1 something is, 2 a name that no root holds.
    """
    from rollbook.cli.env_validate_session import validate  # noqa: PLC0415  paid for by this verb alone

    return validate(given, as_json=wants_json(context))
