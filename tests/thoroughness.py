"""How many examples a property is tried with: a third of them, unless ROLLBOOK_FULL=1."""

import os

FULL = os.environ.get("ROLLBOOK_FULL") == "1"


def examples(full: int) -> int:
    """Return how many of `full` examples are tried."""
    return full if FULL else max(10, full // 3)
