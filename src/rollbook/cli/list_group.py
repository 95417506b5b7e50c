"""`gym list …`: what the search roots hold.

Rules:
* One command per kind; all of them read the same catalog and print the same two shapes.

Source: servers.md §10.2.
"""

from typing import Final

from rollbook.cli.verb import Verb, VerbGroup

_VERBS: Final = {
    "environments": "List environments (benchmarks included).",
    "benchmarks": "List benchmarks.",
    "agents": "List agents.",
    "models": "List model servers.",
    "resources-servers": "List resources servers.",
}

command: Final = VerbGroup(
    "list",
    {name: Verb("rollbook.cli.list_assets", summary, name.replace("-", "_")) for name, summary in _VERBS.items()},
    summary="List environments, benchmarks, agents, models and resources servers.",
)
