"""`gym dataset download`: the flags of fetching a data set from the Hugging Face hub.

Rules:
* The hub is the only storage; another one is refused by name.

Source: servers.md §8.9, §10.2.
"""

from typing import Any, Final

import click

from rollbook.cli.flags import flags, overrides_argument
from rollbook.cli.verb import VerbCommand, wants_json

_options: Final = flags(
    click.option(
        "--storage",
        type=click.Choice(["hf", "gitlab"]),
        default="hf",
        show_default=True,
        help="The Hugging Face hub; GitLab registries are refused.",
    ),
    click.option("--repo-id", metavar="OWNER/NAME", help="The data set (required)."),
    click.option("--name", "dataset_name", metavar="NAME", help="Refused: a name in a GitLab registry."),
    click.option("--revision", metavar="REVISION", help="A branch, a tag or a commit.  [default: the main branch]"),
    click.option("--artifact", "artifact_fpath", metavar="FILE", help="One file of it."),
    click.option("--split", metavar="SPLIT", help="All rows of a split, whatever files hold them."),
    click.option("-o", "--output", "output_fpath", metavar="FILE", help="The file to write."),
    click.option("--output-dir", "output_dirpath", metavar="DIR", help="The folder to write into."),
    click.option("--overwrite", is_flag=True, default=None, help="Replace files that are there already."),
)


@click.command("download", cls=VerbCommand, reports=True, short_help="Fetch a data set from the Hugging Face hub.")
@_options
@overrides_argument
@click.pass_context
def command(context: click.Context, /, **given: Any) -> None:
    """Write a file, a split, or every JSONL file of a data set, held against the digests that the hub gives.

    A file appears whole or not at all; a download that was cut short goes on where it stopped. The token is hf_token
    of env.yaml, or HF_TOKEN.
    """
    from rollbook.cli.dataset_session import download_dataset  # noqa: PLC0415  paid for by this verb alone

    download_dataset(given, as_json=wants_json(context))
