"""What a person decided about a run, and what a run was made from: two entries of its manifest.

Rules:
* A decision names who took it, when, why, and exactly which attempts it is about; it is added, and never changed.

Source: collection.md §4.7, §4.10, §9.1; the entries' form is our own (docs/record-format.md).
"""

from typing import Annotated, Literal

import msgspec

Attempt = tuple[int, int, int]
"""Task, rollout, attempt."""

_Text = Annotated[str, msgspec.Meta(min_length=1)]


class Approval(msgspec.Struct, frozen=True, kw_only=True):
    """One decision.

    `attempts_more`: failures that every rollout may have beyond those that it could have before. `masked`: masked
    results that run again. `released`: attempts that were held and run again.
    """

    at: str
    who: _Text
    why: _Text
    attempts_more: Annotated[int, msgspec.Meta(ge=0)] = 0
    masked: tuple[Attempt, ...] = ()
    released: tuple[Attempt, ...] = ()

    def __str__(self) -> str:
        """Say it in a line."""
        parts = [f"{self.attempts_more} more failures for every rollout"] if self.attempts_more else []
        parts += [f"{len(self.masked)} masked results to run again"] if self.masked else []
        parts += [f"{len(self.released)} held rollouts to run again"] if self.released else []
        return f"{self.at}: {self.who} approved {', '.join(parts) or 'nothing'}: {self.why}"


class Reverified(msgspec.Struct, frozen=True, kw_only=True):
    """Where the answers came from whose rewards a run holds.

    `answers`: the results that stood, what a judge had failed on (the other results were taken over), or trajectories.
    """

    answers: Literal["results", "judge_failures", "trajectories"]
    source: str
    source_run_id: str | None = None
    forced: bool = False
