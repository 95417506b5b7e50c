"""What happened to one rollout over all its attempts, in order.

Rules:
* A chapter says what one line on disk says, and where that line stands; nothing is guessed between two lines.
* What is wrong with the run's files stands beside what they say.

Source: collection.md §4.11, §17.1.
"""

import msgspec

from rollbook.records.identity import RolloutKey
from rollbook.records.run_status import Damage


class Chapter(msgspec.Struct, frozen=True):
    """One thing that happened to one attempt in one session; `place` is `file:line`."""

    attempt: int | None
    session: int | None
    what: str
    place: str


class Story(msgspec.Struct, frozen=True):
    """One rollout: its chapters, where it stands after them, and what a resume would do with it."""

    key: RolloutKey
    planned: bool
    chapters: tuple[Chapter, ...]
    stands: str
    resume: str
    damage: tuple[Damage, ...] = ()

    @property
    def is_known(self) -> bool:
        """Whether the rollout is planned or anything was written about it."""
        return self.planned or bool(self.chapters)


class NotScored(msgspec.Struct, frozen=True):
    """Rollouts that are not scored and that a resume would treat alike: `count` of them, the first ones named.

    `why` is a reason of `RunStatus.owed_by` when `owed`, else one of `not_owed_by`.
    """

    why: str
    owed: bool
    count: int
    first: tuple[RolloutKey, ...]


class AllNotScored(msgspec.Struct, frozen=True):
    """Every rollout of a run that is not scored, and what is wrong with the run's files."""

    groups: tuple[NotScored, ...]
    damage: tuple[Damage, ...] = ()
