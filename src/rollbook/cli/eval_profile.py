"""`gym eval profile`: the flags of asking how hard the tasks of a run are.

Rules:
* Only files are read; no server is asked, and the run is not disturbed.

Source: collection.md §9.4; servers.md §8.11, §10.2.
"""

from typing import Final

import click

from rollbook.cli.flags import flags
from rollbook.cli.verb import VerbCommand, wants_json

_options: Final = flags(
    click.option("--inputs", metavar="PATH", help="Materialized inputs, where no OUTPUT is given."),
    click.option("--rollouts", metavar="PATH", help="The rollouts that were made of them."),
    click.option(
        "-o",
        "--output",
        metavar="OUT",
        help="Write the profile beside this name (required for several runs).  [default: the run's own]",
    ),
    click.option("--allow-partial-rollouts", is_flag=True, help="Profile what is there although results are missing."),
    click.option("--keep", metavar="CONDITION", help="Which tasks to keep, for example 'pass@4>=0.5 and mean<0.9'."),
    click.option("--export", metavar="FILE", help="Write the source rows of the tasks that are kept."),
    click.option("--overwrite", is_flag=True, help="Replace an earlier file of kept rows."),
)


@click.command("profile", cls=VerbCommand, reports=True, short_help="Tell how hard each task of a run is.")
@click.argument("outputs", nargs=-1, metavar="[OUTPUT]...")
@_options
@click.pass_context
def command(
    context: click.Context,
    /,
    outputs: tuple[str, ...],
    *,
    inputs: str | None,
    rollouts: str | None,
    output: str | None,
    allow_partial_rollouts: bool,
    keep: str | None,
    export: str | None,
    overwrite: bool,
) -> int:
    """Tell how hard each task is: its pass rates and the spread of all that was measured, and all tasks together.

    OUTPUT is a run's output, a folder or a pattern; several runs, say shards of one, are profiled together. A
    condition is made of pass@k, mean, max, min, std, n and missing, of comparisons, and, or, not and parentheses. Exit
    code: 0, 5 when a file is damaged.
    """
    from rollbook.cli.loading import loading  # noqa: PLC0415  paid for by this verb alone

    with loading():
        from rollbook.cli.profile_session import Asked, show_profile  # noqa: PLC0415  the same

    asked = Asked(
        *(outputs, inputs, rollouts, output, keep, export),
        overwrite=overwrite,
        allow_partial_rollouts=allow_partial_rollouts,
        as_json=wants_json(context),
    )
    return show_profile(asked)
