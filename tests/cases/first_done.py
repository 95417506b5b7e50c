"""What a process does before it becomes a command: each is a state of the machine or a shorter wait."""

import os
import resource

from rollbook.dispatch import watch


def few_files(soft: int, hard: int) -> None:
    """Have so many files open at most."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def stalls_soon() -> None:
    """Say that a run stalls after a third of a second."""
    watch.STALLED_SECONDS = 0.3  # type: ignore[misc]


def with_environment(**variables: str) -> None:
    """Have these variables in the environment."""
    os.environ.update(variables)
