"""How one rollout stands, as far as counting needs it, and the memory of those that may still change.

Rules:
* What many rollouts share is kept once; each of them costs a few bytes.
* A rollout that is scored and not owed is not sent again in its session, so it is not remembered.
"""

from typing import Final, NamedTuple

import msgspec

from rollbook.records.identity import RolloutKey
from rollbook.records.marks import MOST_MARKS, Marks
from rollbook.records.outcome import Masked, NeverStarted, Outcome, Scored
from rollbook.records.shared import Shared


class Stand(NamedTuple):
    """`spent`: failures that count against the cap. `finished`: it is not outstanding, as nothing is owed of it."""

    kind: type[Outcome]
    name: str | None
    failure_class: str | None = None
    reward: float | None = None
    spent: int = 0
    finished: bool = True


UNSENT: Final = Stand(NeverStarted, None, finished=False)
"""Nothing was sent of it: it counts nowhere."""


class Scores(msgspec.Struct):
    """So many scored rollouts, whose rewards add up to `rewards`."""

    count: int = 0
    rewards: float = 0.0


class Remembered:
    """The stands of rollouts that may change."""

    def __init__(self) -> None:
        self._marks = Marks()
        self._stands: Shared[Stand | None] = Shared(None)
        self._wide: dict[RolloutKey, Stand] = {}

    def of(self, key: RolloutKey) -> Stand | None:
        """Return how `key` stands, or None when it was not remembered."""
        mark = self._marks.of(key)
        return self._wide[key] if mark == MOST_MARKS else self._stands[mark]

    def put(self, key: RolloutKey, stand: Stand) -> None:
        """Remember that `key` stands so; a score of which nothing is owed is final, and forgotten."""
        if stand.kind is Scored and stand.finished:
            self._marks.put(key, 0)
            return
        number = self._stands.number(stand)
        if number >= MOST_MARKS:
            self._wide[key] = stand
        self._marks.put(key, min(number, MOST_MARKS))


def reward_of(outcome: Outcome) -> float | None:
    """Return the reward that was saved with `outcome`, if any."""
    return outcome.reward if isinstance(outcome, Scored | Masked) else None


def dispatch_name(agent: str | None, server: str | None) -> str | None:
    """Return the name that a rollout is counted under: its environment server, else its agent."""
    return server or agent
