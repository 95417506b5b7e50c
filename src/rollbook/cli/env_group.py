"""`gym env …`: the verbs about servers.

Rules:
* Verbs are named here and imported when they are called.
"""

from typing import Final

from rollbook.cli.verb import Verb, VerbGroup

command: Final = VerbGroup(
    "env",
    {
        "init": Verb("rollbook.cli.env_init", "Write the files of a new environment, benchmark or resources server."),
        "validate": Verb("rollbook.cli.env_validate", "Check a configuration, or an environment without running it."),
        "publish": Verb("rollbook.cli.env_publish", "Check that an environment can be published."),
        "schema": Verb("rollbook.cli.env_schema", "Print the JSON Schema of a resources server's task fields."),
        "start": Verb("rollbook.cli.env_start", "Start the servers of a configuration and keep them up."),
        "status": Verb("rollbook.cli.env_status", "Show the servers of a running deployment."),
        "stop": Verb("rollbook.cli.env_stop", "Stop the deployment that `gym env start` keeps up."),
        "test": Verb("rollbook.cli.env_test", "Run the tests of components, or check an environment's verifier."),
        "prefetch": Verb("rollbook.cli.env_prefetch", "Make the environments that a configuration's servers need."),
        "resolve": Verb("rollbook.cli.env_resolve", "Print the configuration as it resolves, secrets masked."),
    },
    summary="Make, check and serve environments.",
)
