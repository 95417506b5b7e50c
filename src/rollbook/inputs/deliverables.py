"""Which files of a rollout's folder are its work, and which only say how the work went.

Rules:
* What an agent keeps for itself, and what it was given, is never shown to a judge as work.
"""

from os import PathLike
from pathlib import Path
from typing import Final

IGNORE_FILES: Final = frozenset(
    {
        "finish_params.json",
        "history.json",
        "history.pkl",
        "inprogress_history.json",
        "log.txt",
        "metadata.json",
        "reference_files",
    }
)
"""Names of files and folders beside the work: the run's own state, and what the task was given."""


def is_deliverable(path: str | PathLike[str]) -> bool:
    """Whether a path is a file that a rollout delivers."""
    place = Path(path)
    return place.name not in IGNORE_FILES and place.is_file()
