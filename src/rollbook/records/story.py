"""What happened to one rollout over all its attempts, in order.

Rules:
* A chapter says what one line on disk says, and where that line stands; nothing is guessed between two lines.

Source: collection.md §4.11, §17.1.
"""

from dataclasses import dataclass

from rollbook.records.identity import RolloutKey


@dataclass(frozen=True, slots=True)
class Chapter:
    """One thing that happened to one attempt in one session; `place` is `file:line`."""

    attempt: int | None
    session: int | None
    what: str
    place: str


@dataclass(frozen=True, slots=True)
class Story:
    """One rollout: its chapters, where it stands after them, and what a resume would do with it."""

    key: RolloutKey
    planned: bool
    chapters: tuple[Chapter, ...]
    stands: str
    resume: str

    @property
    def is_known(self) -> bool:
        """Whether the rollout is planned or anything was written about it."""
        return self.planned or bool(self.chapters)


@dataclass(frozen=True, slots=True)
class NotScored:
    """Rollouts that are not scored and that a resume would treat alike: `count` of them, the first ones named.

    `why` is a reason of `RunStatus.owed_by` when `owed`, else one of `not_owed_by`.
    """

    why: str
    owed: bool
    count: int
    first: tuple[RolloutKey, ...]
