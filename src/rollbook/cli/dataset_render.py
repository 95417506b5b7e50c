"""`gym dataset render`: a prompt template filled in from each row of a file.

Rules:
* No flag is required by the parser; what is missing is told at once.

Source: servers.md §8.7, §10.2.
"""

from pathlib import Path
from typing import Any, Final

import click

from rollbook.cli.flags import flags
from rollbook.cli.verb import VerbCommand, wants_json

_KEYS: Final = ("input_jsonl_fpath", "prompt_config", "output_jsonl_fpath", "overwrite")
_options: Final = flags(
    click.option("-i", "--input", "input_jsonl_fpath", metavar="FILE", help="Rows, as JSONL (required)."),
    click.option("--prompt-config", metavar="PATH", help="The template, as YAML (required)."),
    click.option("-o", "--output", "output_jsonl_fpath", metavar="FILE", help="Where the rows go (required)."),
    click.option("--overwrite", is_flag=True, default=None, help="Replace an earlier output."),
    click.option(
        "--search-dir", metavar="DIR", multiple=True, help="Look for rows and templates here first (repeatable)."
    ),
)


@click.command("render", cls=VerbCommand, reports=True, short_help="Fill a prompt template in from each row.")
@_options
@click.argument("overrides", nargs=-1, metavar="[KEY=VALUE]...")
@click.pass_context
def command(context: click.Context, /, **given: Any) -> None:
    """Write the rows of a file with the messages that a prompt template makes of each.

    Rows that have an `input` of their own are refused, with their lines.
    """
    from rollbook.cli.configuration import given_values, resolved_configuration  # noqa: PLC0415  this verb's alone
    from rollbook.cli.terminal import say, say_json  # noqa: PLC0415  the same
    from rollbook.config.dataset_commands import RenderConfig  # noqa: PLC0415  the same
    from rollbook.config.settings import settings_from  # noqa: PLC0415  the same
    from rollbook.verbs.render_prompts import render_prompts  # noqa: PLC0415  the same

    cfg = resolved_configuration(given, settings=given_values(given, _KEYS))
    config = settings_from(RenderConfig, cfg)
    output = Path(config.output_jsonl_fpath)
    count = render_prompts(config.input_jsonl_fpath, config.prompt_config, output, overwrite=config.overwrite)
    if wants_json(context):
        say_json({"rows": count, "output": str(output)})
    else:
        say(f"Materialized {count} row{'s'[: count != 1]} to {output}")
