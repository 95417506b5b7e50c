"""`gym dataset upload`: the flags of publishing rows on the Hugging Face hub.

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
    click.option("-i", "--input", "input_jsonl_fpath", metavar="FILE", help="Rows, as JSONL (required)."),
    click.option(
        "--name", "dataset_name", metavar="NAME", help="OWNER/NAME, or a name below hf_organization (required)."
    ),
    click.option("--revision", metavar="BRANCH", help="The branch to publish on.  [default: the main branch]"),
    click.option("--split", metavar="SPLIT", help="Publish as SPLIT.jsonl.  [default: the file's own name]"),
    click.option("--private", is_flag=True, default=None, help="Where the data set is made, nobody else sees it."),
    click.option("--create-pr", is_flag=True, default=None, help="Propose the change instead of making it."),
    click.option("--commit-message", metavar="TEXT", help="What the change is called."),
    click.option("--commit-description", metavar="TEXT", help="What is said about the change."),
)


@click.command("upload", cls=VerbCommand, reports=True, short_help="Publish rows on the Hugging Face hub.")
@_options
@overrides_argument
@click.pass_context
def command(context: click.Context, /, **given: Any) -> None:
    """Publish a file of rows as a file of a data set, which is made where it is not there.

    Every row is looked at first. The token is hf_token of env.yaml, or HF_TOKEN.
    """
    from rollbook.cli.dataset_session import upload_dataset  # noqa: PLC0415  paid for by this verb alone

    upload_dataset(given, as_json=wants_json(context))
