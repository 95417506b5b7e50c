"""The command line: words → settings → one call → an exit code.

Rules:
* Nothing heavy is imported before a verb is chosen: `gym --help` answers at once.
* A result goes to standard output, everything else to standard error.

Source: servers.md §10.
"""

from rollbook.cli.entry import main

__all__ = ["main"]
