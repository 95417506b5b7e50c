"""`gym env init`: the flags of making an environment, a benchmark or a resources server.

Rules:
* Files go below the first `--search-dir`, else below the current folder.
* What was written is listed, with the commands that check and run it.

Source: servers.md §10.2.
"""

from pathlib import Path
from typing import Any, Final

import click

from rollbook.cli.flags import flags
from rollbook.cli.verb import VerbCommand

PROFILES: Final = ("custom-gym-verifier", "custom-gym-agent-loop", "external-agent-loop", "external-rollout-driver")

_targets: Final = flags(
    click.option("--resources-server", metavar="NAME", help="Make a resources server: a verifier and its rows."),
    click.option("--environment", metavar="NAME", help="Make an environment: a verifier, an agent, a manifest."),
    click.option("--benchmark", metavar="NAME", help="Make a benchmark: an environment with a prepare script."),
)
_how: Final = flags(
    click.option("--profile", type=click.Choice(PROFILES), help="Who acts. [default: custom-gym-verifier]"),
    click.option("--reuse-verifier", metavar="NAME", help="Take a resources server of the shelf, and make none."),
    click.option(
        "--reward-range", type=float, nargs=2, metavar="LOW HIGH", help="Between which ends rewards lie. [default: 0 1]"
    ),
    click.option(
        "--higher-is-better/--lower-is-better", default=None, help="Which end is the good one. [default: higher]"
    ),
    click.option(
        "--search-dir", metavar="DIR", multiple=True, help="Write below this folder, and look for verifiers there."
    ),
)


@click.command("init", cls=VerbCommand, short_help="Write the files of a new environment.")
@_targets
@_how
def command(**given: Any) -> None:
    """Write the files of a new environment, benchmark or resources server.

    What is written works as it stands. Nothing that is there is changed: a second call says that everything is up to
    date, and files with other contents are an error that names them.

    Exit code: 0 written or up to date, 1 files with other contents, 2 a name or a range that cannot be.
    """
    from rollbook.cli.env_init_session import make  # noqa: PLC0415  paid for by this verb alone

    dirs: tuple[str, ...] = given["search_dir"]
    make(given, Path(dirs[0]) if dirs else Path())
