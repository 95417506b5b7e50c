"""`gym eval …`: the verbs about runs.

Rules:
* Verbs are named here and imported when they are called.
"""

from typing import Final

from rollbook.cli.verb import Verb, VerbGroup

command: Final = VerbGroup(
    "eval",
    {"run": Verb("rollbook.cli.eval_run", "Collect rollouts and score them.")},
    summary="Run tasks against servers and score what comes back.",
)
