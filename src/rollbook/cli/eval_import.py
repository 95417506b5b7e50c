"""`gym eval import`: the flags of taking up logs that others wrote.

Rules:
* Only files are read; no server is asked, and the logs are left as they are.
* An output that holds something is replaced only with `--overwrite`.
"""

from typing import Final

import click

from rollbook.cli.flags import flags
from rollbook.cli.verb import VerbCommand, wants_json

_options: Final = flags(
    click.option(
        "-o", "--output", metavar="OUT", help="The run's output that is written, for example out/r.jsonl (required)."
    ),
    click.option("--scorer", metavar="NAME[/VALUE]", help="Whose score is the reward, where several scorers judged."),
    click.option("--overwrite", is_flag=True, help="Replace what is at the output."),
)


@click.command("import", cls=VerbCommand, reports=True, short_help="Take up logs of other tools as a run.")
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@_options
@click.pass_context
def command(
    context: click.Context, /, paths: tuple[str, ...], *, output: str | None, scorer: str | None, overwrite: bool
) -> None:
    """Turn logs of other tools into a run of ours, so that status, explain, profile and compare work on them.

    PATH is a log or a folder of logs: inspect_ai's, as .eval or as JSON. Tasks are known by what they say, so that two
    imports can be compared. What is imported is not run here: a resume refuses it.
    """
    from rollbook.cli.import_session import show_import  # noqa: PLC0415  paid for by this verb alone

    if output is None:
        raise click.UsageError("say with --output where the run is to be written, for example --output out/r.jsonl.")
    show_import(paths, output, scorer, overwrite=overwrite, as_json=wants_json(context))
