"""`gym eval …`: the verbs about runs.

Rules:
* Verbs are named here and imported when they are called.
"""

from typing import Final

from rollbook.cli.verb import Verb, VerbGroup

command: Final = VerbGroup(
    "eval",
    {
        "prepare": Verb("rollbook.cli.eval_prepare", "Write the data sets of benchmarks."),
        "run": Verb("rollbook.cli.eval_run", "Collect rollouts and score them."),
        "aggregate": Verb("rollbook.cli.eval_aggregate", "Score results that are there already."),
        "status": Verb("rollbook.cli.eval_status", "Show how a run is, and what a resume would do."),
        "reverify": Verb("rollbook.cli.eval_reverify", "Judge saved answers again."),
        "resubmit": Verb("rollbook.cli.eval_resubmit", "Decide that rollouts run again."),
        "ctl": Verb("rollbook.cli.eval_ctl", "Tell a run that goes on what to do."),
        "health-check": Verb("rollbook.cli.eval_health_check", "Check how well a run's records are."),
        "explain": Verb("rollbook.cli.eval_explain", "Tell what happened to a rollout."),
        "profile": Verb("rollbook.cli.eval_profile", "Tell how hard each task of a run is."),
        "import": Verb("rollbook.cli.eval_import", "Take up logs of other tools as a run."),
        "compare": Verb("rollbook.cli.eval_compare", "Compare runs: is a candidate better or worse?"),
    },
    summary="Run tasks against servers and score what comes back.",
)
