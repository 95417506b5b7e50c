"""`gym dev …`: the verbs for those who work on agents and environments.

Rules:
* Verbs are named here and imported when they are called.
"""

from typing import Final

from rollbook.cli.verb import Verb, VerbGroup

command: Final = VerbGroup(
    "dev",
    {"compare": Verb("rollbook.cli.dev_compare", "Compare runs by their rows.")},
    summary="Look into saved rollouts: compare.",
)
