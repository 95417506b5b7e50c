"""`gym dataset collate`: the flags of making the declared data sets ready.

Rules:
* A flag that was not given sets nothing: files and overrides keep their say.

Source: servers.md §8.9, §10.2.
"""

from typing import Any, Final

import click

from rollbook.cli.flags import config_flags, flags, overrides_argument, selector_flags
from rollbook.cli.verb import VerbCommand, wants_json

_options: Final = flags(
    click.option(
        "--mode",
        type=click.Choice(["train_preparation", "example_validation"]),
        help="Train, validation and benchmark data, or example data (required).",
    ),
    click.option("--output-dir", "output_dirpath", metavar="DIR", help="Where the files go (required)."),
    click.option("--overwrite", is_flag=True, default=None, help="Replace files there that no collation wrote."),
    click.option(
        "--download", "should_download", is_flag=True, default=None, help="Fetch data sets that are not there."
    ),
    click.option(
        "--task-data-validation",
        type=click.Choice(["off", "warn", "error", "auto"]),
        help="What a row is that does not fit its server's TaskData.  [default: auto]",
    ),
    click.option(
        "--overwrite-metrics-conflicts",
        is_flag=True,
        default=None,
        help="Replace metrics beside a data set that say otherwise.",
    ),
)


@click.command("collate", cls=VerbCommand, reports=True, short_help="Check, measure and join declared data sets.")
@config_flags
@selector_flags
@_options
@overrides_argument
@click.pass_context
def command(context: click.Context, /, **given: Any) -> None:
    """Write the rows of the data sets that a configuration declares into one file a type, with what they amount to.

    Rows are checked, given their prompt and their task source, and repeated as their data set says. The metrics of
    each data set go beside it, and are compared with those that are there.
    """
    from rollbook.cli.loading import loading  # noqa: PLC0415  paid for by this verb alone

    with loading():
        from rollbook.cli.dataset_session import collate_datasets  # noqa: PLC0415  the same

    collate_datasets(given, as_json=wants_json(context))
