"""`gym eval ctl`: the arguments of telling a live run what to do.

Rules:
* The run is asked through a socket beside its output; no file of it is written.
"""

from typing import Final

import click

from rollbook.cli.verb import VerbCommand, wants_json

_COMMANDS: Final = ("status", "concurrency", "pause", "resume", "drain", "requeue")


class _Order(click.Choice[str]):
    """One of the commands; for a word that is none, the closest is named."""

    def __init__(self) -> None:
        super().__init__(_COMMANDS)

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if value not in _COMMANDS:
            from rollbook.config.tree import did_you_mean  # noqa: PLC0415  paid for by a mistake alone

            self.fail(f"{value!r} is none of {', '.join(_COMMANDS)}.{did_you_mean(value, _COMMANDS)}", param, ctx)
        return value


@click.command("ctl", cls=VerbCommand, reports=True, short_help="Tell a run that goes on what to do.")
@click.argument("output", metavar="OUTPUT")
@click.argument("order", metavar="COMMAND", type=_Order())
@click.argument("words", nargs=-1, metavar="[N | auto | TASK-ROLLOUT...]")
@click.pass_context
def command(context: click.Context, /, output: str, order: str, words: tuple[str, ...]) -> int:
    """Tell a run that goes on what to do, or ask how it is.

    \b
    status           say what is in flight, and which rollouts wait longest
    concurrency N    have at most N rollouts in flight from now on; with `auto`, let the run find how many
    pause, resume    send nothing further; send again
    drain            send nothing further, and end once what is in flight has ended
    requeue TASK-ROLLOUT...
                     end these rollouts' attempts in flight, and run them again

    OUTPUT is the run's output. Exit code: 0 done, 1 no run goes on there, or a rollout to requeue was not in flight.
    """  # noqa: D301  \b keeps the lines of the table apart, and is no backslash
    from rollbook.cli.ctl_session import order_of, tell  # noqa: PLC0415  paid for by this verb alone
    from rollbook.verbs.control_request import ask  # noqa: PLC0415  the same

    return tell(output, order_of(order, words), ask, as_json=wants_json(context))
