"""`gym dataset rm` and `gym dataset migrate`, which are about GitLab registries alone, and are refused.

Rules:
* What is refused is told with what to use instead; nothing is asked of any server.

Source: servers.md §10.2.
"""

from typing import Final, NoReturn

import click

from rollbook.cli.verb import VerbCommand

NO_GITLAB: Final = "GitLab registries are not supported"
_ANYTHING: Final = {"ignore_unknown_options": True, "help_option_names": ["-h", "--help"]}


def refuse_gitlab(instead: str) -> NoReturn:
    """Refuse what is about a GitLab registry.

    Raises:
        click.UsageError: always; says what to use instead.

    """
    raise click.UsageError(f"{NO_GITLAB}; {instead}")


@click.command(
    "rm", cls=VerbCommand, context_settings=_ANYTHING, short_help="Refused: GitLab registries are not supported."
)
@click.argument("words", nargs=-1, type=click.UNPROCESSED)
def remove(words: tuple[str, ...]) -> None:  # noqa: ARG001  whatever is given is refused
    """Say how to remove a data set that lies in a GitLab registry."""
    refuse_gitlab("remove the model in GitLab: Deploy, Model registry, or DELETE /projects/:id/ml/models of its API.")


@click.command(
    "migrate", cls=VerbCommand, context_settings=_ANYTHING, short_help="Refused: GitLab registries are not supported."
)
@click.argument("words", nargs=-1, type=click.UNPROCESSED)
def migrate(words: tuple[str, ...]) -> None:  # noqa: ARG001  the same
    """Say how to move a data set from a GitLab registry to the Hugging Face hub."""
    refuse_gitlab(
        "fetch the file from GitLab, then publish it: gym dataset upload --storage hf --input FILE --name NAME."
    )
