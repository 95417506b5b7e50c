"""The one seam between dispatch and the disk.

Rules:
* Whatever returns is durable when it returns.
* Dispatch never cancels a call: it waits until the call has ended, however it was told to end itself.
* Calls of different rollouts overlap; those of one rollout follow each other.

Source: collection.md §3.2, §5.4.2.
"""

from collections.abc import Sequence
from typing import Protocol

from rollbook.records.ending import Ending
from rollbook.records.record import Record
from rollbook.records.task import Rollout


class Ledger(Protocol):
    """Where attempts are written down before they are sent, and again when they end; all may raise `LedgerError`."""

    async def reserve(self, rollout: Rollout) -> Rollout:
        """Return `rollout` with the next attempt number that was never handed out."""
        ...

    async def write(self, rollout: Rollout, ending: Ending) -> Record:
        """Save how an attempt ended, and return what was saved of it."""
        ...

    async def refused(self, rollout: Rollout, why: str) -> None:
        """Say that a reserved attempt never ran; its rollout is still owed."""
        ...

    async def cut(self, rollouts: Sequence[Rollout], why: str) -> None:
        """Say that these attempts were in flight when dispatch ended them."""
        ...

    async def stopped(self, why: str) -> None:
        """Say that admission ended: what is owed and was not sent is never started."""
        ...
