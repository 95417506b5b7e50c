"""What other people's logs hold, in our words: one evaluation, and its rollouts one by one.

Rules:
* A log is somebody else's: whatever is wrong in it is one `LogError` that names file and place, never a traceback.
* What the log says was planned and says nothing of is told as well: a rollout without an ending.
* A rollout's row is what its task says, without identity; who it is, is decided where rows of all logs come together.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from rollbook.errors import RollbookError
from rollbook.records.ending import Ending
from rollbook.records.json_values import JsonObject


class LogError(RollbookError):
    """A log that cannot be imported; names the file, and where in it."""


@dataclass(frozen=True, slots=True)
class LogHead:
    """One evaluation: the log's form, the evaluated task and model, when it began (ISO 8601) and how long it took."""

    path: Path
    form: str
    task: str
    model: str | None
    created_at: str
    closed_at: str
    seconds: float


@dataclass(frozen=True, slots=True)
class LoggedRollout:
    """One try at one sample. `repeat`: which of its tries, from 0. Without an `ending` nothing was logged of it.

    `content`: what makes it the same task as another, which is told by value.
    """

    content: JsonObject
    row: JsonObject
    repeat: int
    ending: Ending | None


class ForeignLog(Protocol):
    """A log that was opened."""

    @property
    def head(self) -> LogHead:
        """What it says of the evaluation as a whole."""
        ...

    def rollouts(self, scorer: str | None) -> Iterator[LoggedRollout]:
        """Yield what it says of each rollout, the tries of a sample together; `scorer` names whose score is the reward.

        Raises:
            LogError: something in it cannot be read, or several scorers judged it and none was named.

        """
        ...
