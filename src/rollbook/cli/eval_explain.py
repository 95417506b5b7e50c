"""`gym eval explain`: the arguments of asking what happened to a rollout.

Rules:
* Only files are read; no server is asked, and the run is not disturbed.

Source: collection.md §4.11, §17.1.
"""

import click

from rollbook.cli.verb import VerbCommand, wants_json


@click.command("explain", cls=VerbCommand, reports=True, short_help="Tell what happened to a rollout.")
@click.argument("output", metavar="OUTPUT")
@click.argument("rollout", nargs=-1, metavar="[TASK ROLLOUT]")
@click.pass_context
def command(context: click.Context, /, output: str, rollout: tuple[str, ...]) -> int:
    """Tell what happened to one rollout over all its attempts, where it stands, and what a resume would do with it.

    TASK ROLLOUT are its two numbers, also written as one: 3-0. Without them, the rollouts that are not scored are
    listed by what a resume would do with them.

    Exit code: 0 whatever the story, 5 when a file is damaged.
    """
    from rollbook.cli.explain_session import show_not_scored, show_story  # noqa: PLC0415  paid for by this verb alone
    from rollbook.verbs.status import not_scored, story_of  # noqa: PLC0415  the same

    if rollout:
        return show_story(output, rollout, story_of, as_json=wants_json(context))
    return show_not_scored(output, not_scored, as_json=wants_json(context))
