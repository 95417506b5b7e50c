"""Which rollouts wait to be sent again, and why, by what is seen of a run.

Rules:
* A rollout waits from the end of an attempt that never ran, or was cut, until its next one starts.
* Once something ended, the reason is an old one, and is told no longer.
"""

import msgspec

from rollbook.records.event import AttemptCut, AttemptRefused
from rollbook.records.identity import RolloutKey


class SentAgain(msgspec.Struct):
    """The fold. `why` is what the latest attempt that never ran met, None once another one ended."""

    why: str | None = None
    _waiting: set[RolloutKey] = msgspec.field(default_factory=set)

    def __len__(self) -> int:
        """Return how many wait."""
        return len(self._waiting)

    def put_off(self, event: AttemptRefused | AttemptCut) -> None:
        """Note that a rollout waits."""
        self._waiting.add(event.key)
        if isinstance(event, AttemptRefused):
            self.why = event.why

    def started(self, key: RolloutKey) -> None:
        """Note that an attempt of a rollout started."""
        if self._waiting:
            self._waiting.discard(key)

    def ended(self) -> None:
        """Note that an attempt ended, and left a line."""
        self.why = None
